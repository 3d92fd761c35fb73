"""The demo's actions of platforms and operators, on a control plane that is stopped at the end."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Self

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
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import DEFAULT_HOME, Emulator, free_port
from orchestrator.local.errors import LocalError
from orchestrator.local.home import take_lock
from orchestrator.local.releases import bumped, publish, released_template
from orchestrator.local.steps import Steps
from orchestrator.tenants.names import Names

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_sqs import SQSClient

HOME = DEFAULT_HOME / "demo"
"""The demo's own home, so that it does not touch a control plane that `make up` started."""

LOCK = "show.lock"
"""Held by the process that shows something. Without a holder, an emulator that runs in the home was left over."""

MAX_REQUESTS = 60
POLL_SECONDS = 0.5


class Show:
    """One demo: its control plane, and the actions to show on it."""

    def __init__(self, console: Console, emulator: Emulator, outputs: dict[str, str]) -> None:
        session = session_without_profile(emulator.session_settings())
        credentials = session.get_credentials()
        if credentials is None:
            raise LocalError("The emulator's credentials are missing.")
        self.console, self.emulator, self._outputs = console, emulator, outputs
        self.api = Client(
            transport=SignedHttp(
                emulator.api_url(outputs["ApiUrl"]), credentials, session.region_name, connect_to=emulator.endpoint
            )
        )
        self.sqs: SQSClient = session.client("sqs", endpoint_url=emulator.endpoint)
        self.session = session
        self._cloudformation: CloudFormationClient = session.client("cloudformation", endpoint_url=emulator.endpoint)

    @classmethod
    @contextmanager
    def on(cls, console: Console, home: Path = HOME) -> Iterator[Self]:
        lock = take_lock(home / LOCK)
        if lock is None:
            raise LocalError(
                f"One is running already, in {os.path.relpath(home)}. End it with Ctrl-C in its terminal, or start "
                "this one in another folder: BERTH_LOCAL_HOME=..."
            )
        try:
            with cls._locked_on(console, home) as show:
                yield show
        finally:
            os.close(lock)

    @classmethod
    @contextmanager
    def _locked_on(cls, console: Console, home: Path) -> Iterator[Self]:
        left_over = Emulator.running(home)
        if left_over is not None:
            left_over.stop()  # A demo that was killed has left it running.
        emulator = Emulator(port=free_port(), home=home, keep_state=False)
        try:
            with Steps.on(console) as steps:
                steps("Starting the emulator")
                emulator.start()
                outputs = deploy(emulator, steps)
            yield cls(console, emulator, outputs)
        finally:
            with Steps.on(console) as steps:
                try:
                    steps("Stopping the emulator")
                finally:
                    # A terminal that was closed takes no line any more.
                    emulator.stop()

    def chapter(self, title: str) -> None:
        self.console.print(f"\n[bold]{title}[/]")

    # A platform

    def ask(self, tenant: TenantId) -> ApiAnswer:
        answer = self.api.send_request(GET_QUEUE, TenantIdRequest(tenant_id=tenant.value))
        meaning = escape(str(answer.body.get("detail", "")))
        if answer.status == 200:
            meaning = f"the queue, at version {answer.body['version']}"
        elif answer.retry_after:
            meaning = f"being provisioned, ask again in {answer.retry_after:.0f} s"
        line = f"  GET /tenants/{tenant}/queue  [bold]{answer.status}[/]  [dim]{meaning}[/]"
        self.console.print(line, highlight=False, soft_wrap=True)
        return answer

    def ask_until_ready(self, tenant: TenantId) -> str:
        for _ in range(MAX_REQUESTS):
            answer = self.ask(tenant)
            if answer.status == 200:
                queue_url = str(answer.body["queueUrl"])
                self.console.print(f"  [dim]{escape(queue_url)}[/]", highlight=False, soft_wrap=True)
                return queue_url
            if answer.status != 202:
                raise LocalError(f"The tenant was not provisioned: {answer.body.get('detail')}")
            sleep(answer.retry_after or 1)
        raise LocalError(f"The tenant was not provisioned after {MAX_REQUESTS} requests.")

    def begin_provisioning(self, tenants: Sequence[TenantId]) -> None:
        """The first request for a tenant's queue starts its provisioning."""
        for tenant in tenants:
            self.api.send_request(GET_QUEUE, TenantIdRequest(tenant_id=tenant.value))

    def provision(self, tenants: Sequence[TenantId]) -> None:
        waiting = list(tenants)
        for _ in range(MAX_REQUESTS):
            waiting = [
                tenant
                for tenant in waiting
                if self.api.send_request(GET_QUEUE, TenantIdRequest(tenant_id=tenant.value)).status != 200
            ]
            if not waiting:
                return
            sleep(POLL_SECONDS)
        raise LocalError(f"After {MAX_REQUESTS} requests these tenants had no queue: {', '.join(map(str, waiting))}")

    def send(self, queue_url: str, message: str) -> None:
        self.sqs.send_message(QueueUrl=queue_url, MessageBody=message)

    def send_and_receive(self, queue_url: str, message: str) -> None:
        self.send(queue_url, message)
        self.console.print(f"  sent      {escape(message)}", highlight=False)
        received = self.sqs.receive_message(QueueUrl=queue_url, WaitTimeSeconds=5).get("Messages", [])
        if [each["Body"] for each in received] != [message]:
            raise LocalError(f"The message was not received: {received}")
        self.sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=received[0]["ReceiptHandle"])
        self.console.print(f"  received  {escape(received[0]['Body'])}", highlight=False)

    # An operator

    def values_of(self, *arguments: str) -> Mapping[str, str]:
        """Run the command line as a person would, and return what it prints: the values by their names."""
        return _values(self._run(*arguments, ends_with=ExitCode.OK, keep_output=True))

    @contextmanager
    def meanwhile(self, *commands: Sequence[str]) -> Iterator[Future[Sequence[Mapping[str, str]]]]:
        """Run these commands, one after the other, beside the work of this block, which mostly waits.

        The result has what each of them prints: the values by their names. Nothing is shown.
        """

        def run(command: Sequence[str]) -> Mapping[str, str]:
            done = self._completed(command, keep_output=True)
            if done.returncode != ExitCode.OK:
                raise LocalError(f"berth {shlex.join(command)} failed: {done.stdout}")
            return _values(done.stdout)

        with ThreadPoolExecutor(1) as thread:
            yield thread.submit(lambda: [run(each) for each in commands])

    @staticmethod
    def command(arguments: Sequence[str]) -> Sequence[str]:
        return [str(Path(sys.executable).with_name("berth")), "--local", *arguments]

    @property
    def environment(self) -> Mapping[str, str]:
        return os.environ | {"BERTH_LOCAL_HOME": str(self.emulator.home), "COLUMNS": str(self.console.width)}

    def show_command(self, arguments: Sequence[str]) -> None:
        self.console.print(f"  $ {shlex.join(['berth', '--local', *arguments])}", highlight=False, soft_wrap=True)
        self.console.file.flush()

    def berth(self, *arguments: str, ends_with: ExitCode = ExitCode.OK) -> None:
        """Run the command line as a person would."""
        self._run(*arguments, ends_with=ends_with, keep_output=self.console.record)

    def _run(self, *arguments: str, ends_with: ExitCode, keep_output: bool) -> str:
        """The output of the command if it is kept. Otherwise it goes to the terminal as it comes."""
        self.show_command(arguments)
        done = self._completed(arguments, keep_output=keep_output)
        if done.stdout:
            self.console.print(Text.from_ansi(done.stdout.rstrip("\n")), soft_wrap=True)
        if done.returncode != ends_with:
            raise LocalError(f"The command ended with exit code {done.returncode}, not {ends_with.value}.")
        return done.stdout or ""

    def _completed(self, arguments: Sequence[str], *, keep_output: bool) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 (our own command line)
            self.command(arguments),
            env=self.environment,
            stdout=subprocess.PIPE if keep_output else None,
            stderr=subprocess.STDOUT if keep_output else None,
            text=True,
            check=False,
        )

    def publish_releases(self) -> tuple[str, str]:
        """Publish two more releases, as two deployments would: the first works, the second cannot be deployed."""
        current = self._outputs["TemplateVersion"]
        major, minor, _ = current.split(".")
        better, worse = f"{major}.{int(minor) + 1}.0", f"{major}.{int(minor) + 2}.0"
        template = released_template(current)
        queue = template["Resources"]["InboundQueue"]["Properties"]
        queue["VisibilityTimeout"] = 120
        publish(self.emulator, self._outputs, better, bumped(template, better))
        # SQS refuses this value: the maximum is twelve hours.
        queue["VisibilityTimeout"] = 999_999
        publish(self.emulator, self._outputs, worse, bumped(template, worse))
        return better, worse

    def delete_stack(self, tenant: TenantId) -> None:
        self._cloudformation.delete_stack(StackName=Names().stack_of(tenant))
        waiter = self._cloudformation.get_waiter("stack_delete_complete")
        waiter.wait(StackName=Names().stack_of(tenant), WaiterConfig={"Delay": 1})


def _values(output: str) -> Mapping[str, str]:
    """The values that a command has printed, by their names."""
    lines = (line.partition(":") for line in Text.from_ansi(output).plain.splitlines())
    return {name: value.strip() for name, _, value in lines}
