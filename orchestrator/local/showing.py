"""The demo's actions of platforms and operators, on a control plane that is stopped at the end."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from orchestrator.adapters.sessions import session_without_profile
from orchestrator.api.fields import TenantIdRequest
from orchestrator.api.queue_routes import GET_QUEUE
from orchestrator.cli.errors import ExitCode
from orchestrator.client.client import Client
from orchestrator.client.transport import ApiAnswer, SignedHttp
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.console import Steps
from orchestrator.local.deployment import deploy, events_outputs
from orchestrator.local.emulator import DEFAULT_HOME, Emulator, free_port
from orchestrator.local.errors import LocalError
from orchestrator.local.releases import bumped, publish, released_template
from orchestrator.tenants.names import Names

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_sqs import SQSClient

HOME = DEFAULT_HOME / "demo"
"""The demo's own home, so that it does not touch a control plane that `make up` started."""

_MAX_REQUESTS = 60
_POLL_SECONDS = 0.5


class Show:
    """One demo: its control plane, and the actions to show on it."""

    def __init__(self, console: Console, emulator: Emulator, outputs: dict[str, str]) -> None:
        session = session_without_profile(emulator.session_settings())
        credentials = session.get_credentials()
        if credentials is None:
            raise LocalError("The emulator's credentials are missing.")
        self._console, self._emulator, self._outputs = console, emulator, outputs
        self._api = Client(
            transport=SignedHttp(
                emulator.api_url(outputs["ApiUrl"]), credentials, session.region_name, connect_to=emulator.endpoint
            )
        )
        self._sqs: SQSClient = session.client("sqs", endpoint_url=emulator.endpoint)
        self._cloudformation: CloudFormationClient = session.client("cloudformation", endpoint_url=emulator.endpoint)

    @classmethod
    @contextmanager
    def on(cls, console: Console) -> Iterator[Show]:
        left_over = Emulator.running(HOME)
        if left_over is not None:
            left_over.stop()  # A demo that was killed has left it running.
        emulator = Emulator(port=free_port(), home=HOME, keep_state=False)
        try:
            with Steps.on(console) as steps:
                steps("Starting the emulator")
                emulator.start()
                outputs = deploy(emulator, steps)
            yield cls(console, emulator, outputs)
        finally:
            with Steps.on(console) as steps:
                steps("Stopping the emulator")
                emulator.stop()

    def chapter(self, title: str) -> None:
        self._console.print(f"\n[bold]{title}[/]")

    # A platform

    def ask(self, tenant: TenantId) -> ApiAnswer:
        answer = self._api.send_request(GET_QUEUE, TenantIdRequest(tenant_id=tenant.value))
        meaning = escape(str(answer.body.get("detail", "")))
        if answer.status == 200:
            meaning = f"the queue, at version {answer.body['version']}"
        elif answer.retry_after:
            meaning = f"being provisioned, ask again in {answer.retry_after:.0f} s"
        line = f"  GET /tenants/{tenant}/queue  [bold]{answer.status}[/]  [dim]{meaning}[/]"
        self._console.print(line, highlight=False, soft_wrap=True)
        return answer

    def ask_until_ready(self, tenant: TenantId) -> str:
        for _ in range(_MAX_REQUESTS):
            answer = self.ask(tenant)
            if answer.status == 200:
                queue_url = str(answer.body["queueUrl"])
                self._console.print(f"  [dim]{escape(queue_url)}[/]", highlight=False, soft_wrap=True)
                return queue_url
            if answer.status != 202:
                raise LocalError(f"The tenant was not provisioned: {answer.body.get('detail')}")
            sleep(answer.retry_after or 1)
        raise LocalError(f"The tenant was not provisioned after {_MAX_REQUESTS} requests.")

    def provision(self, tenants: Sequence[TenantId]) -> None:
        waiting = list(tenants)
        for _ in range(_MAX_REQUESTS):
            waiting = [
                tenant
                for tenant in waiting
                if self._api.send_request(GET_QUEUE, TenantIdRequest(tenant_id=tenant.value)).status != 200
            ]
            if not waiting:
                return
            sleep(_POLL_SECONDS)
        raise LocalError(f"After {_MAX_REQUESTS} requests these tenants had no queue: {', '.join(map(str, waiting))}")

    def send(self, queue_url: str, message: str) -> None:
        self._sqs.send_message(QueueUrl=queue_url, MessageBody=message)

    def send_and_receive(self, queue_url: str, message: str) -> None:
        self.send(queue_url, message)
        self._console.print(f"  sent      {escape(message)}", highlight=False)
        received = self._sqs.receive_message(QueueUrl=queue_url, WaitTimeSeconds=5).get("Messages", [])
        if [each["Body"] for each in received] != [message]:
            raise LocalError(f"The message was not received: {received}")
        self._sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=received[0]["ReceiptHandle"])
        self._console.print(f"  received  {escape(received[0]['Body'])}", highlight=False)

    # Whoever sends events to a tenant

    def post(self, path: str, body: bytes, *, expected: int, **headers: str) -> str:
        """Send this JSON to the Events API, as a program without AWS credentials does. The id of the event, if any."""
        api = urlsplit(self._emulator.api_url(events_outputs(self._emulator)["EventsApiUrl"]))
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        request = AWSRequest(
            "POST",
            f"{self._emulator.endpoint}{path}",
            headers={"Host": api.netloc, "Content-Type": "application/json", **given},
            data=body,
        )
        response = URLLib3Session().send(request.prepare())
        answer = json.loads(response.content)
        meaning = escape(str(answer.get("detail") or f"event {answer.get('event_id')}"))
        line = f"  POST {path}  [bold]{response.status_code}[/]  [dim]{meaning}[/]"
        self._console.print(line, highlight=False, soft_wrap=True)
        if response.status_code != expected:
            raise LocalError(f"The answer has the status {response.status_code}, not {expected}: {answer}")
        return str(answer.get("event_id", ""))

    # An operator

    def values_of(self, *arguments: str) -> Mapping[str, str]:
        """Run the command line as a person would, and return what it prints: the values by their names."""
        done = self._run(*arguments, ends_with=ExitCode.OK, keep_output=True)
        lines = (line.partition(":") for line in Text.from_ansi(done).plain.splitlines())
        return {name: value.strip() for name, _, value in lines}

    def berth(self, *arguments: str, ends_with: ExitCode = ExitCode.OK) -> None:
        """Run the command line as a person would."""
        self._run(*arguments, ends_with=ends_with, keep_output=self._console.record)

    def _run(self, *arguments: str, ends_with: ExitCode, keep_output: bool) -> str:
        """The output of the command if it is kept. Otherwise it goes to the terminal as it comes."""
        command = ["berth", "--local", *arguments]
        self._console.print(f"  $ {shlex.join(command)}", highlight=False, soft_wrap=True)
        self._console.file.flush()
        environment = os.environ | {"BERTH_LOCAL_HOME": str(self._emulator.home), "COLUMNS": str(self._console.width)}
        berth = Path(sys.executable).with_name("berth")
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if keep_output else {}
        done = subprocess.run([berth, *command[1:]], env=environment, check=False, **output)  # type: ignore[call-overload]  # noqa: S603 (our own command line)
        shown = (done.stdout or b"").decode()
        if shown:
            self._console.print(Text.from_ansi(shown.rstrip("\n")), soft_wrap=True)
        if done.returncode != ends_with:
            raise LocalError(f"The command ended with exit code {done.returncode}, not {ends_with.value}.")
        return shown

    def publish_releases(self) -> tuple[str, str]:
        """Publish two more releases, as two deployments would: the first works, the second cannot be deployed."""
        current = self._outputs["Version"]
        major, minor, _ = current.split(".")
        better, worse = f"{major}.{int(minor) + 1}.0", f"{major}.{int(minor) + 2}.0"
        template = released_template(current)
        queue = template["Resources"]["InboundQueue"]["Properties"]
        queue["VisibilityTimeout"] = 120
        publish(self._emulator, self._outputs, better, bumped(template, better))
        # SQS refuses this value: the maximum is twelve hours.
        queue["VisibilityTimeout"] = 999_999
        publish(self._emulator, self._outputs, worse, bumped(template, worse))
        return better, worse

    def delete_stack(self, tenant: TenantId) -> None:
        self._cloudformation.delete_stack(StackName=Names().stack_of(tenant))
        waiter = self._cloudformation.get_waiter("stack_delete_complete")
        waiter.wait(StackName=Names().stack_of(tenant), WaiterConfig={"Delay": 1})
