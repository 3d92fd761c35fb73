"""The requests that temporary credentials allow and deny, on an emulator that enforces IAM's policies.

It does not put session tags into policies, so the role here may do everything on both queues: what bounds a session
is its own policy. What bounds the role is in tests/stacks/.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters.sessions import session_without_profile
from orchestrator.adapters.sts import StsCredentials
from orchestrator.local.emulator import ACCOUNT, REGION, Emulator, free_port
from orchestrator.tenants.credentials import Access
from orchestrator.tenants.records import Queue
from tests.fakes import ACME

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

ROLE = "queue-access"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/{ROLE}"
BOTH = ("acme", "another-tenants")


class EnforcingEmulator(Emulator):
    """It refuses what no policy allows. Its own key is the account's root."""

    def _server_environment(self) -> dict[str, str]:
        return super()._server_environment() | {"AUTH": "true"}


class Account:
    """An account with a queue of each of two tenants, and a role that may do everything on both."""

    def __init__(self, emulator: Emulator) -> None:
        self._endpoint = emulator.endpoint
        self._session: Any = session_without_profile(emulator.session_settings())
        self._sqs, self._sts, self._iam = self._client("sqs"), self._client("sts"), self._client("iam")
        self.queues = {name: self._make_queue(name) for name in BOTH}
        self._make_role()
        given = self._sts.assume_role(RoleArn=ROLE_ARN, RoleSessionName="all")["Credentials"]
        self.role = self._sqs_with(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
        """SQS, as the role itself may use it."""
        self.holders = {access: self._holder_of(access) for access in Access}
        """SQS, used with the credentials for acme's queue."""

    def put(self, queue: str) -> str:
        """Send a message as root, receive it, and return the receipt that stands for it."""
        url = self.queues[queue].url
        self._sqs.send_message(QueueUrl=url, MessageBody="by root")
        return str(self._sqs.receive_message(QueueUrl=url)["Messages"][0]["ReceiptHandle"])

    def _make_queue(self, name: str) -> Queue:
        return Queue(
            f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}",
            self._sqs.create_queue(QueueName=name)["QueueUrl"],
        )

    def _make_role(self) -> None:
        root = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
        self._iam.create_role(
            RoleName=ROLE,
            AssumeRolePolicyDocument=policy(
                Principal=root, Action=["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"]
            ),
        )
        queues = [queue.arn for queue in self.queues.values()]
        self._iam.put_role_policy(
            RoleName=ROLE, PolicyName="all", PolicyDocument=policy(Action="sqs:*", Resource=queues)
        )

    def _holder_of(self, access: Access) -> SQSClient:
        issued = StsCredentials(lambda: self._sts, ROLE_ARN, 900).issue(
            ACME, self.queues["acme"], access, source_identity="platform=ada-0123456789ab"
        )
        return self._sqs_with(issued.access_key_id, issued.secret_access_key, issued.session_token)

    def _sqs_with(self, key: str, secret: str, token: str) -> SQSClient:
        sqs: SQSClient = self._client(
            "sqs", aws_access_key_id=key, aws_secret_access_key=secret, aws_session_token=token
        )
        return sqs

    def _client(self, service: str, **credentials: str) -> Any:
        return self._session.client(service, endpoint_url=self._endpoint, **credentials)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    emulator = EnforcingEmulator(port=free_port(), home=tmp_path_factory.mktemp("enforcing"), keep_state=False)
    emulator.start()
    try:
        yield Account(emulator)
    finally:
        emulator.stop()


def policy(**statement: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})


Call = Callable[["SQSClient", str, str], object]

SEND: dict[str, Call] = {
    "SendMessage": lambda sqs, url, _receipt: sqs.send_message(QueueUrl=url, MessageBody="hello"),
}
RECEIVE: dict[str, Call] = {
    "ReceiveMessage": lambda sqs, url, _receipt: sqs.receive_message(QueueUrl=url),
    "ChangeMessageVisibility": lambda sqs, url, receipt: sqs.change_message_visibility(
        QueueUrl=url, ReceiptHandle=receipt, VisibilityTimeout=0
    ),
    "DeleteMessage": lambda sqs, url, receipt: sqs.delete_message(QueueUrl=url, ReceiptHandle=receipt),
}
MANAGE: dict[str, Call] = {
    "GetQueueAttributes": lambda sqs, url, _receipt: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]),
    "SetQueueAttributes": lambda sqs, url, _receipt: sqs.set_queue_attributes(
        QueueUrl=url, Attributes={"DelaySeconds": "0"}
    ),
    "PurgeQueue": lambda sqs, url, _receipt: sqs.purge_queue(QueueUrl=url),
}
"""All but deleting the queue, which the role would be able to do in earnest."""

EVERYTHING = SEND | RECEIVE | MANAGE
ALLOWED = {Access.SEND: SEND, Access.RECEIVE: RECEIVE}

for_each_action = pytest.mark.parametrize("action", EVERYTHING)
for_each_access = pytest.mark.parametrize("access", Access)


def refused(call: Call, sqs: SQSClient, queue: Queue, receipt: str) -> bool:
    try:
        call(sqs, queue.url, receipt)
    except ClientError as error:
        if error.response["Error"]["Code"] != "AccessDenied":
            raise
        return True
    return False


@pytest.mark.parametrize("queue", BOTH)
@for_each_action
def test_the_role_without_a_session_policy_may_do_everything(account: Account, action: str, queue: str) -> None:
    assert not refused(EVERYTHING[action], account.role, account.queues[queue], account.put(queue))


@for_each_action
@for_each_access
def test_credentials_allow_only_their_access(account: Account, access: Access, action: str) -> None:
    was_refused = refused(EVERYTHING[action], account.holders[access], account.queues["acme"], account.put("acme"))
    assert was_refused == (action not in ALLOWED[access])


@for_each_action
@for_each_access
def test_credentials_allow_nothing_on_another_tenants_queue(account: Account, access: Access, action: str) -> None:
    other = "another-tenants"
    assert refused(EVERYTHING[action], account.holders[access], account.queues[other], account.put(other))


@for_each_access
def test_credentials_do_not_allow_to_list_or_delete_queues(account: Account, access: Access) -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        account.holders[access].list_queues()
    with pytest.raises(ClientError, match="AccessDenied"):
        account.holders[access].delete_queue(QueueUrl=account.queues["acme"].url)
