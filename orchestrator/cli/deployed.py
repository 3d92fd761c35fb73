"""A control plane that the CDK has deployed, on AWS or locally. The outputs of its stack say where its API is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from orchestrator.adapters.aws import CLIENT_CONFIG, SystemClock, error_code, throttling
from orchestrator.adapters.sessions import session_without_profile
from orchestrator.cli.control_plane import DeployedStack, LocalControlPlane, Options
from orchestrator.cli.errors import ControlPlaneNotFound
from orchestrator.client.client import Client
from orchestrator.client.transport import HttpWithKey, SignedHttp
from orchestrator.common.errors import Throttled
from orchestrator.tenants.names import DEFAULT_NAME, Names

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

    from orchestrator.adapters.migration import Migration
    from orchestrator.cli.api import Document

_LONG_POLL_SECONDS = 5
"""The duration of a long poll. It is shorter than the SDK's read timeout."""


@dataclass(frozen=True, slots=True)
class SqsQueue:
    """Implements :class:`orchestrator.cli.control_plane.UsableQueue`."""

    client: SQSClient
    url: str

    def send(self, body: str) -> None:
        with throttling():
            self.client.send_message(QueueUrl=self.url, MessageBody=body)

    def receive(self) -> list[str]:
        with throttling():
            received = self.client.receive_message(
                QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=_LONG_POLL_SECONDS
            )
            messages = received.get("Messages", [])
            for message in messages:
                self.client.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return [message["Body"] for message in messages]


class Deployment:
    def __init__(
        self, options: Options, local: LocalControlPlane | None, *, announce: Callable[[str], None] | None = None
    ) -> None:
        """``announce`` is called with the place of a control plane on AWS, before the first request to its APIs."""
        self._announce = announce if local is None else None
        self._name = options.stack
        self._local = local
        named = "" if options.stack == DEFAULT_NAME else f' CDK_ARGS="-c berth:name={options.stack}"'
        if local is None:
            self._session = Session(region_name=options.region, profile_name=options.profile)
            self._endpoint_url, self._config = None, CLIENT_CONFIG
            self._where = f"in {self._session.region_name}"
            self._advice = f"deploy it with make deploy{named}, or use --stack/--region"
        else:
            self._session = session_without_profile(local.session_settings())
            # The local control plane is never behind this machine's proxy.
            self._endpoint_url, self._config = local.endpoint, CLIENT_CONFIG.merge(Config(proxies={}))
            self._where = f"at {local.endpoint}"
            self._advice = f"deploy it with make up{named}, or use --stack"

    def caller(self) -> str:
        with throttling():
            return str(self._client("sts").get_caller_identity()["Arn"])

    def api(self) -> Client:
        return self._client_of(self.api_url)

    def events_api(self, key: str | None = None) -> Client:
        if key is not None:
            return Client(transport=HttpWithKey(self.events_api_url, key, connect_to=self._endpoint_url))
        return self._client_of(self.events_api_url)

    def _client_of(self, url: str) -> Client:
        credentials = self._session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        return Client(transport=SignedHttp(url, credentials, self._session.region_name, connect_to=self._endpoint_url))

    def queue(self, url: str, credentials: Document) -> SqsQueue:
        client = self._session.client(
            "sqs",
            endpoint_url=self._endpoint_url,
            config=self._config,
            aws_access_key_id=credentials["accessKeyId"],
            aws_secret_access_key=credentials["secretAccessKey"],
            aws_session_token=credentials["sessionToken"],
        )
        return SqsQueue(client, url)

    def migration(self, sleep: Callable[[float], None]) -> Migration:
        # Imported here, because no other command needs these.
        from orchestrator.adapters.cloudformation import CloudFormationStacks
        from orchestrator.adapters.migration import Migration
        from orchestrator.adapters.sqs import SqsQueues

        outputs = self.stack.outputs
        names = Names.parse(self._name, [each for each in outputs.get("LegacyStackPrefixes", "").split(",") if each])
        stacks = CloudFormationStacks(self._client("cloudformation"), names=names, service_role="")
        return Migration(
            self._client("dynamodb"),
            self._output(self.stack, "TableName"),
            stacks,
            stacks.stack_with,
            SqsQueues(self._client("sqs")),
            SystemClock(),
            sleep,
        )

    @property
    def api_url(self) -> str:
        return self._url_in(self.stack, "ApiUrl")

    @property
    def events_api_url(self) -> str:
        return self._url_in(self.events_stack, "EventsApiUrl")

    def _url_in(self, stack: DeployedStack, output: str) -> str:
        deployed = self._output(stack, output)
        return self._local.api_url(deployed) if self._local else deployed

    def _output(self, stack: DeployedStack, output: str) -> str:
        if output not in stack.outputs:
            raise ControlPlaneNotFound(
                f"The stack {stack.name} {stack.where} has no output {output} (its status is {stack.status}): "
                "wait until it is deployed, or choose another control plane with --stack."
            )
        return stack.outputs[output]

    @cached_property
    def stack(self) -> DeployedStack:
        found = self._find(self._name)
        if found is None:
            raise ControlPlaneNotFound(
                f"No control plane named {self._name} {self._where}: {self._advice}.{self._existing_control_planes()}"
            )
        return found

    @cached_property
    def events_stack(self) -> DeployedStack:
        name = Names.parse(self._name).events
        found = self._find(name)
        if found is None:
            raise ControlPlaneNotFound(
                f"There is no stack {name} {self._where}, so {self._name} has no event plane: {self._advice}. The "
                "setting berth:events=false leaves the event plane out."
            )
        return found

    def _find(self, name: str) -> DeployedStack | None:
        try:
            with throttling():
                stack = self._client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        except ClientError as error:
            # CloudFormation reports ValidationError if there is no such stack or if the name is invalid.
            if error_code(error) != "ValidationError":
                raise
            return None
        outputs = {output.get("OutputKey", ""): output.get("OutputValue", "") for output in stack.get("Outputs", [])}
        account = None if self._local else _account_in(stack.get("StackId", ""))
        found = DeployedStack(name, self._where, stack["StackStatus"], outputs, account)
        if self._announce:
            self._announce(replace(found, name=self._name).place)
            self._announce = None
        return found

    def _existing_control_planes(self) -> str:
        """A sentence that names the control planes in this region; empty if the caller may not list exports.

        The managed policy for operators does not allow that.
        """
        try:
            with throttling():
                pages = self._client("cloudformation").get_paginator("list_exports").paginate()
                exports = [(each["Name"], each["ExportingStackId"]) for page in pages for each in page["Exports"]]
        except (BotoCoreError, ClientError, Throttled):
            return ""
        found = sorted(str(names) for export in exports if (names := Names.exporting(*export)))
        return f" Existing control planes: {', '.join(found)}." if found else " There are no control planes here."

    # Any, because boto3 creates its clients at run time.
    def _client(self, service: Literal["cloudformation", "dynamodb", "sqs", "sts"]) -> Any:
        return self._session.client(service, endpoint_url=self._endpoint_url, config=self._config)


def _account_in(stack_id: str) -> str | None:
    """The account in the stack's id, which costs no call to ask for."""
    parts = stack_id.split(":")
    return parts[4] if len(parts) > 4 else None
