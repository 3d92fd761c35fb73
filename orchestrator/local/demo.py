"""The demonstration: a platform asks for a tenant's queue, and uses it. Everything is real but the cloud."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.adapters.queue_api import QueueApi
from orchestrator.adapters.sessions import session_without_profile
from orchestrator.local.console import Steps
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import DEFAULT_HOME, Emulator, free_port
from orchestrator.local.errors import LocalError
from orchestrator.tenants import TenantId

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

TENANT = TenantId("acme")
HOME = DEFAULT_HOME / "demo"
"""Its own: the demonstration leaves a control plane that was started with `make up` alone."""

ASKED_AT_MOST = 60


def main(console: Console) -> None:
    console.print("A tenant gets its queue: the real control plane, on this machine, without an AWS account.\n")
    left_over = Emulator.running(HOME)
    if left_over is not None:
        left_over.stop()  # By a demonstration that was killed.
    emulator = Emulator(port=free_port(), home=HOME, keep_state=False)
    try:
        with Steps.on(console) as steps:
            steps("Starting the emulator")
            emulator.start()
            outputs = deploy(emulator, steps)
        _show(console, emulator, outputs)
    finally:
        with Steps.on(console) as steps:
            steps("Stopping the emulator")
            emulator.stop()
    console.print("\nNext: [bold]make up[/] keeps a control plane running, for you to try [bold].venv/bin/berth[/].")


def _show(console: Console, emulator: Emulator, outputs: dict[str, str]) -> None:
    session = session_without_profile(emulator.session_settings())
    credentials = session.get_credentials()
    if credentials is None:
        raise LocalError("The emulator's credentials are missing.")
    api = QueueApi(emulator.api_url(outputs["ApiUrl"]), credentials, session.region_name, connect_to=emulator.endpoint)
    console.print(f"\n[bold]A platform asks for tenant {TENANT}'s queue, until it is there:[/]")
    queue_url = _ask_until_ready(console, api)
    console.print("\n[bold]It sends a message through the queue, and receives it:[/]")
    _use(console, session.client("sqs", endpoint_url=emulator.endpoint), queue_url)
    console.print("\n[bold]What an operator sees:[/]")
    _berth(console, emulator, "tenant", TENANT.value)


def _ask_until_ready(console: Console, api: QueueApi) -> str:
    for _ in range(ASKED_AT_MOST):
        answer = api.get_queue(TENANT)
        told = {200: "here it is", 202: "being provisioned"}.get(answer.status, "")
        if answer.retry_after:
            told += f", ask again in {answer.retry_after:.0f} s"
        console.print(f"  GET /tenants/{TENANT}/queue  [bold]{answer.status}[/]  [dim]{told}[/]", highlight=False)
        if answer.status == 200:
            console.print(f"  [dim]{answer.body['queueUrl']}[/]", highlight=False, soft_wrap=True)
            return str(answer.body["queueUrl"])
        if answer.status != 202:
            raise LocalError(f"The tenant was not provisioned: {answer.body.get('detail')}")
        sleep(answer.retry_after or 1)
    raise LocalError(f"The tenant was not provisioned after {ASKED_AT_MOST} questions.")


def _use(console: Console, sqs: SQSClient, queue_url: str) -> None:
    sent = "Hello, acme!"
    sqs.send_message(QueueUrl=queue_url, MessageBody=sent)
    console.print(f"  sent      {sent}", highlight=False)
    received = sqs.receive_message(QueueUrl=queue_url, WaitTimeSeconds=5).get("Messages", [])
    if [message["Body"] for message in received] != [sent]:
        raise LocalError(f"The message was not received: {received}")
    sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=received[0]["ReceiptHandle"])
    console.print(f"  received  {received[0]['Body']}", highlight=False)


def _berth(console: Console, emulator: Emulator, *arguments: str) -> None:
    """Run the command line as a person would, on the demonstration's control plane."""
    command = ["berth", "--local", *arguments]
    console.print(f"  $ {shlex.join(command)}", highlight=False)
    console.file.flush()
    environment = os.environ | {"BERTH_LOCAL_HOME": str(emulator.home)}
    berth = Path(sys.executable).with_name("berth")
    subprocess.run([berth, *command[1:]], env=environment, check=True)  # noqa: S603 (our own command line)
