"""The demonstration: the whole life of a tenant, and a fleet on the move. Everything is real but the cloud."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.adapters.berth_api import ApiAnswer, BerthApi
from orchestrator.adapters.sessions import session_without_profile
from orchestrator.cli.errors import ExitCode
from orchestrator.local.console import Steps
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import DEFAULT_HOME, Emulator, free_port
from orchestrator.local.errors import LocalError
from orchestrator.local.releases import bumped, publish, released_template
from orchestrator.tenants import TenantId

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_sqs import SQSClient

TENANT = TenantId("acme")
OTHERS = tuple(TenantId(name) for name in ("globex", "hooli", "initech", "soylent"))
HOME = DEFAULT_HOME / "demo"
"""Its own: the demonstration leaves a control plane that was started with `make up` alone."""

ASKED_AT_MOST = 60


def main(console: Console) -> None:
    console.print(
        "The life of a tenant, and a fleet on the move. Everything is real but the cloud: that is this machine.\n"
    )
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
    api = BerthApi(emulator.api_url(outputs["ApiUrl"]), credentials, session.region_name, connect_to=emulator.endpoint)
    sqs = session.client("sqs", endpoint_url=emulator.endpoint)

    _chapter(console, f"A platform asks for tenant {TENANT}'s queue, until it is there:")
    queue_url = _ask_until_ready(console, api)
    _chapter(console, "It sends a message through the queue, and receives it:")
    _use(console, sqs, queue_url)

    better, worse = _publish_releases(emulator, outputs)
    _chapter(console, f"A release later, an operator moves the tenant to {better}:")
    _berth(console, emulator, "upgrade", TENANT.value, "--to", better, "--wait")
    _chapter(console, f"Release {worse} cannot be deployed. The upgrade fails, and says why:")
    _berth(console, emulator, "upgrade", TENANT.value, "--to", worse, "--wait", ends_with=ExitCode.FAILED)
    _chapter(console, "The tenant is served all the same, as before:")
    _ask(console, api)

    _chapter(console, "A message is waiting in the queue, so the tenant is not deleted:")
    sqs.send_message(QueueUrl=queue_url, MessageBody="Not handled yet")
    _berth(console, emulator, "delete", TENANT.value, ends_with=ExitCode.REFUSED)
    _chapter(console, "Unless the operator insists:")
    _berth(console, emulator, "delete", TENANT.value, "--force", "--yes", "--wait")
    _chapter(console, "A deleted tenant stays deleted, whoever asks for its queue:")
    _ask(console, api)
    _chapter(console, "Until someone creates it again:")
    _berth(console, emulator, "create", TENANT.value, "--wait")

    _chapter(console, "All of it is on record:")
    _berth(console, emulator, "tenant", TENANT.value)

    _chapter(console, f"More tenants have come. What would moving all of them to {better} change?")
    _provision(api, OTHERS)
    _berth(console, emulator, "rollout", "plan", "--to", better, "--all")
    _chapter(console, "A canary first, then a few, then the rest:")
    rollout = ("rollout", "start", "--stages", "1,40%,rest", "--concurrency", "2", "--bake", "3", "--watch")
    _berth(console, emulator, *rollout, "--to", better)
    _chapter(console, f"Release {worse} gets no further than the canary:")
    _berth(console, emulator, *rollout, "--to", worse, ends_with=ExitCode.FAILED)
    _chapter(console, "So that is where the fleet is:")
    _berth(console, emulator, "releases")

    lost = OTHERS[0]
    _chapter(console, f"Somebody deletes the stack of {lost}, past Berth. That is noticed, and put right:")
    _delete_stack(session.client("cloudformation", endpoint_url=emulator.endpoint), lost)
    _berth(console, emulator, "reconcile")
    _chapter(console, "And is the control plane itself well?")
    _berth(console, emulator, "doctor")


def _delete_stack(cloudformation: CloudFormationClient, tenant: TenantId) -> None:
    cloudformation.delete_stack(StackName=tenant.stack_name)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=tenant.stack_name, WaiterConfig={"Delay": 1})


def _chapter(console: Console, title: str) -> None:
    console.print(f"\n[bold]{title}[/]")


def _publish_releases(emulator: Emulator, outputs: dict[str, str]) -> tuple[str, str]:
    """Two more releases, as two more deployments would publish them: one that works, and one that cannot."""
    current = outputs["Version"]
    major, minor, _ = current.split(".")
    better, worse = f"{major}.{int(minor) + 1}.0", f"{major}.{int(minor) + 2}.0"
    template = released_template(current)
    queue = template["Resources"]["InboundQueue"]["Properties"]
    queue["VisibilityTimeout"] = 120
    publish(emulator, outputs, better, bumped(template, better))
    # SQS hides a message for twelve hours at most.
    queue["VisibilityTimeout"] = 999_999
    publish(emulator, outputs, worse, bumped(template, worse))
    return better, worse


def _provision(api: BerthApi, tenants: Sequence[TenantId]) -> None:
    waiting = list(tenants)
    for _ in range(ASKED_AT_MOST):
        waiting = [tenant for tenant in waiting if api.get_queue(tenant).status != 200]
        if not waiting:
            return
        sleep(1)
    raise LocalError(f"After {ASKED_AT_MOST} questions these had no queue: {', '.join(map(str, waiting))}")


def _ask(console: Console, api: BerthApi) -> ApiAnswer:
    answer = api.get_queue(TENANT)
    told = str(answer.body.get("detail", ""))
    if answer.status == 200:
        told = f"here it is, at version {answer.body['version']}"
    elif answer.retry_after:
        told = f"being provisioned, ask again in {answer.retry_after:.0f} s"
    asked = f"  GET /tenants/{TENANT}/queue  [bold]{answer.status}[/]  [dim]{told}[/]"
    console.print(asked, highlight=False, soft_wrap=True)
    return answer


def _ask_until_ready(console: Console, api: BerthApi) -> str:
    for _ in range(ASKED_AT_MOST):
        answer = _ask(console, api)
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


def _berth(console: Console, emulator: Emulator, *arguments: str, ends_with: ExitCode = ExitCode.OK) -> None:
    """Run the command line as a person would, on the demonstration's control plane."""
    command = ["berth", "--local", *arguments]
    console.print(f"  $ {shlex.join(command)}", highlight=False, soft_wrap=True)
    console.file.flush()
    environment = os.environ | {"BERTH_LOCAL_HOME": str(emulator.home)}
    berth = Path(sys.executable).with_name("berth")
    done = subprocess.run([berth, *command[1:]], env=environment, check=False)  # noqa: S603 (our own command line)
    if done.returncode != ends_with:
        raise LocalError(f"That was to end with {ends_with.value}, not with {done.returncode}.")
