"""Credentials for the events of one tenant, evaluated by an emulator that refuses what no policy allows.

The role may do everything on the table, so that only the session policy limits the credentials.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters.dynamodb.event_keys import STATUS_INDEX, TYPE_INDEX
from orchestrator.adapters.event_access import StsEventAccess, session_policy
from orchestrator.adapters.sessions import session_without_profile
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.records import TenantEpoch
from orchestrator.local.emulator import ACCOUNT, REGION, Emulator, free_port
from tests.adapters.events.tables import make_events_table
from tests.fakes import ACME
from tests.fakes.events import ACME_LIFE, event_settings

TABLE = "events"
TABLE_ARN = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}"
ROLE = "event-access"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/{ROLE}"

OTHERS = {
    "another tenant": TenantEpoch(TenantId("globex"), ACME_LIFE.epoch),
    "a tenant whose id begins with the same letters": TenantEpoch(TenantId("acme-2"), ACME_LIFE.epoch),
    "a successor of the same id": TenantEpoch(ACME, "77aa0123"),
}


class Account:
    """The table, and DynamoDB as the holder of the credentials for acme may use it."""

    def __init__(self, emulator: Emulator) -> None:
        self._endpoint = emulator.endpoint
        self._session: Any = session_without_profile(emulator.session_settings())
        make_events_table(self._client("dynamodb"), TABLE)
        self._make_role()
        access = StsEventAccess(
            lambda: self._client("sts"), role=ROLE_ARN, table=TABLE, table_arn=TABLE_ARN, seconds=900
        )
        self.issued = access.issue(event_settings(shards=2), source_identity="platform=ada-0123456789ab")
        self.holder = self._with(self.issued.access_key_id, self.issued.secret_access_key, self.issued.session_token)
        given = self._client("sts").assume_role(RoleArn=ROLE_ARN, RoleSessionName="all")["Credentials"]
        self.role = self._with(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])

    def _make_role(self) -> None:
        trust = {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
            "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
        }
        everything = {"Effect": "Allow", "Action": "dynamodb:*", "Resource": [TABLE_ARN, f"{TABLE_ARN}/index/*"]}
        iam = self._client("iam")
        iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=_policy(trust))
        iam.put_role_policy(RoleName=ROLE, PolicyName="all", PolicyDocument=_policy(everything))

    def _with(self, key: str, secret: str, token: str) -> Any:
        return self._client("dynamodb", aws_access_key_id=key, aws_secret_access_key=secret, aws_session_token=token)

    def _client(self, service: str, **credentials: str) -> Any:
        return self._session.client(service, endpoint_url=self._endpoint, **credentials)


def _policy(statement: dict[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    emulator = Emulator(
        port=free_port(),
        home=tmp_path_factory.mktemp("event-access"),
        keep_state=False,
        server="tests.e2e.enforced.server",
    )
    emulator.start()
    try:
        yield Account(emulator)
    finally:
        emulator.stop()


Call = Callable[[Any, TenantEpoch], object]


def key_of(life: TenantEpoch, shard: int = 0) -> dict[str, Any]:
    return {"pk": {"S": f"TENANT_ID#{life}#{shard}"}, "sk": {"S": "EVT#1"}}


def query(index: str, attribute: str) -> Call:
    def call(dynamodb: Any, life: TenantEpoch) -> object:
        return dynamodb.query(
            TableName=TABLE,
            IndexName=index,
            KeyConditionExpression=f"{attribute} = :pk",
            ExpressionAttributeValues={":pk": {"S": f"{life}#1"}},
        )

    return call


READS: dict[str, Call] = {
    "GetItem": lambda dynamodb, life: dynamodb.get_item(TableName=TABLE, Key=key_of(life)),
    "BatchGetItem": lambda dynamodb, life: dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": [key_of(life, 1)]}}),
    "Query": lambda dynamodb, life: dynamodb.query(
        TableName=TABLE, KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": key_of(life)["pk"]}
    ),
    "Query by status": query(STATUS_INDEX, "GSI1PK"),
    "Query by type": query(TYPE_INDEX, "GSI2PK"),
}
OTHER_CALLS: dict[str, Call] = {
    "Scan": lambda dynamodb, _life: dynamodb.scan(TableName=TABLE),
    "Scan of an index": lambda dynamodb, _life: dynamodb.scan(TableName=TABLE, IndexName=STATUS_INDEX),
    "PutItem": lambda dynamodb, life: dynamodb.put_item(TableName=TABLE, Item=key_of(life)),
    "UpdateItem": lambda dynamodb, life: dynamodb.update_item(TableName=TABLE, Key=key_of(life)),
    "DeleteItem": lambda dynamodb, life: dynamodb.delete_item(TableName=TABLE, Key=key_of(life)),
    "DescribeTable": lambda dynamodb, _life: dynamodb.describe_table(TableName=TABLE),
    "events of a webhook source": lambda dynamodb, _life: query(TYPE_INDEX, "GSI2PK")(dynamodb, "SRC#src_1"),  # type: ignore[arg-type]
}


def is_refused(call: Call, dynamodb: Any, life: TenantEpoch) -> bool:
    try:
        call(dynamodb, life)
    except ClientError as error:
        if "AccessDenied" not in error.response["Error"]["Code"]:
            raise
        return True
    return False


@pytest.mark.parametrize("name", [*READS, *OTHER_CALLS])
def test_the_role_without_a_session_policy_may_do_everything(account: Account, name: str) -> None:
    assert not is_refused((READS | OTHER_CALLS)[name], account.role, OTHERS["another tenant"])


@pytest.mark.parametrize("name", READS)
def test_the_tenants_own_rows_are_read(account: Account, name: str) -> None:
    assert not is_refused(READS[name], account.holder, ACME_LIFE)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", READS)
def test_rows_of_other_tenants_are_never_read(account: Account, name: str, other: str) -> None:
    assert is_refused(READS[name], account.holder, OTHERS[other])


@pytest.mark.parametrize("name", OTHER_CALLS)
def test_nothing_else_is_allowed_on_the_tenants_own_rows(account: Account, name: str) -> None:
    assert is_refused(OTHER_CALLS[name], account.holder, ACME_LIFE)


def test_a_batch_with_one_row_of_another_tenant_is_refused(account: Account) -> None:
    keys = [key_of(ACME_LIFE), key_of(OTHERS["another tenant"])]
    with pytest.raises(ClientError, match="AccessDenied"):
        account.holder.batch_get_item(RequestItems={TABLE: {"Keys": keys}})


def test_the_holder_is_told_where_the_events_are(account: Account) -> None:
    assert account.issued.table == TABLE
    assert account.issued.partitions == [f"TENANT_ID#{ACME_LIFE}#{shard}" for shard in (0, 1)]
    assert account.issued.secret_access_key not in repr(account.issued)


def test_the_longest_policy_is_one_that_sts_takes() -> None:
    """STS takes session policies of up to 2,048 characters."""
    longest = TenantEpoch(TenantId("x" * 40), "0" * 32)
    arn = f"arn:aws:dynamodb:ap-southeast-1:123456789012:table/{'x' * 100}"
    key = "arn:aws:kms:ap-southeast-1:123456789012:key/00000000-0000-0000-0000-000000000000"
    assert len(json.dumps(session_policy(arn, longest, kms_key=key))) < 2048
