"""What is run of the commands about tenants."""

from __future__ import annotations

from datetime import timedelta

from orchestrator.api.answers import answer
from orchestrator.api.responses import Response, no_credentials, try_again_later
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.unfinished import DELIVERIES, INBOX, MAX_COUNTED
from orchestrator.tenants.credentials import Access, Credentials
from orchestrator.tenants.decisions import (
    BeingDeleted,
    Deleted,
    Failed,
    FleetFull,
    NotProvisioned,
    TooManyCreates,
    Unknown,
)
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Operation, Status
from orchestrator.tenants.stack_ports import Stack
from tests.fakes import ACME, NOON, QUEUE, QUEUE_TABOO, VERSION, a_release, an_audit, execution_arn, stack_arn
from tests.transcripts.script import script
from tests.transcripts.shell import Shell
from tests.unit.cli.conftest import Scene

DLQ = f"{QUEUE.url}-dlq"


def fails(scene: Scene) -> None:
    scene.api.begin()
    scene.api.fail()


def fleet(shell: Shell) -> Scene:
    """Tenants in every state."""
    scene = shell.begin()
    scene.has()
    scene.has(TenantId("bob"), version="0.2.0")
    scene.api.label(TenantId("bob"), {"plan": "gold", "team": "blue"})
    scene.has(TenantId("carol"))
    scene.api.pin(TenantId("carol"), "0.1.0")
    scene.api.create(TenantId("duff"), labels={"plan": "free"}, reason="Ticket 4711")
    fails(scene)
    scene.has(TenantId("eve"))
    scene.api.upgrade(TenantId("eve"))
    fails(scene)
    scene.has(TenantId("fred"))
    scene.api.delete(TenantId("fred"), reason="the contract has ended")
    scene.api.begin()
    scene.api.succeed()
    scene.has(TenantId("gina"))
    scene.api.upgrade(TenantId("gina"))
    scene.api.begin()
    scene.has(TenantId("hal"))
    scene.api.delete(TenantId("hal"))
    scene.api.begin()
    scene.api.create(TenantId("ida"))
    scene.api.begin()
    return scene


@script("create")
def _(shell: Shell) -> None:
    shell.run("create acme", "A new tenant.")
    shell.begin()
    shell.run("create acme --version 0.1.0 --label team=blue --label note='a b' --reason 'Ticket 4711' --json")
    shell.begin().has()
    shell.both("create acme", "The tenant exists.")
    shell.run("create acme --version 0.1.0 --label team=blue")
    shell.run("create acme --unpin --json")
    shell.run("create acme --unpin", "It has no pin.")
    shell.run("create acme --label a=b --version 0.1.0")
    shell.run("create acme --label a=c --unpin")
    shell.run("create acme --version 0.2.0")
    shell.run("create acme --tier standard")
    scene = shell.begin()
    scene.meanwhile = [scene.api.begin, scene.api.succeed]
    shell.run("create acme --wait")
    scene = shell.begin()
    scene.meanwhile = [scene.api.begin, scene.api.fail]
    shell.run("create acme --wait", "The create fails.")
    scene = shell.begin()
    scene.meanwhile = [scene.api.begin, scene.api.fail]
    shell.run("create acme --wait --json", "The create fails.")
    scene = shell.begin()
    shell.run("create acme --wait --timeout 5", "It takes too long.")
    shell.begin()
    shell.run("create acme --version 9.9.9")
    shell.run("create acme --version newest --json")
    shell.run("create acme --version 0.1.0 --unpin")
    shell.run("create acme --tier gold")
    shell.run("create acme --label team")
    shell.run("create acme --label 'te am=x'")
    shell.run("create acme --label team=a,b")
    shell.run("create acme --timeout 0")
    shell.run("create a/b")
    scene = fleet(shell)
    shell.run("create duff", "The create has failed before.")
    shell.run("create hal", "The tenant is being deleted.")
    shell.run("create fred", "The tenant was deleted.")


@script("upgrade")
def _(shell: Shell) -> None:
    shell.begin().has()
    shell.run("upgrade acme")
    shell.run("upgrade acme", "The tenant is busy.")
    shell.run("upgrade acme --wait --timeout 5")
    shell.begin().has()
    shell.run("upgrade acme --to 0.1.0 --json")
    shell.run("upgrade acme --to 0.2.0 --allow-replacement", "There is no terminal.")
    shell.run("upgrade acme --to 0.2.0 --allow-replacement", typed="no\n")
    shell.run("upgrade acme --to 0.2.0 --allow-replacement --yes --reason 'Ticket 4711' --json")
    scene = shell.begin()
    scene.has(version="0.2.0")
    shell.both("upgrade acme", "The tenant is at the current release.")
    shell.run("upgrade acme --to 0.1.0")
    shell.run("upgrade acme --to 0.1.0 --allow-downgrade")
    scene = shell.begin()
    scene.has()
    scene.meanwhile = [scene.api.begin, scene.api.succeed]
    shell.run("upgrade acme --wait")
    scene = shell.begin()
    scene.has()
    scene.meanwhile = [scene.api.begin, scene.api.fail]
    shell.run("upgrade acme --wait", "The update fails.")
    shell.run("upgrade acme --to 9.9.9")
    shell.run("upgrade acme --to newest")
    shell.run("upgrade nobody")
    scene = fleet(shell)
    shell.run("upgrade carol", "The tenant is pinned.")
    shell.run("upgrade duff")
    shell.run("upgrade fred")
    shell.run("upgrade hal")


@script("move")
def _(shell: Shell) -> None:
    shell.begin().has()
    shell.both("move acme --tier standard", "The tenant is in this tier.")
    shell.run("move acme --tier gold", "The tier has no release.")
    for options in ("--reason 'Ticket 4711'", "--json", "--wait --timeout 60"):
        scene = shell.begin()
        scene.has()
        scene.api.table.record_release(a_release("2.0.0", tier="gold"))
        scene.meanwhile = [scene.api.begin, scene.api.succeed]
        shell.run(f"move acme --tier gold {options}")
    shell.run("move acme --tier 'no tier'")
    shell.run("move nobody --tier standard")


@script("label")
def _(shell: Shell) -> None:
    shell.begin().has()
    shell.run("label acme plan=gold team=blue --reason 'Ticket 4711'")
    shell.run("label acme plan=gold --json", "It has the label.")
    shell.run("label acme plan- --json")
    shell.run("label acme plan-")
    shell.run("label acme 'te am=x'")
    shell.run("label acme plan=gold plan-")
    shell.run("label acme plan")
    shell.run("label nobody plan=gold")


@script("pin")
def _(shell: Shell) -> None:
    shell.begin().has()
    shell.both("pin acme 0.1.0")
    shell.run("pin acme 0.2.0 --reason 'Ticket 4711'")
    shell.run("pin acme 9.9.9")
    shell.run("pin acme newest")
    shell.run("pin nobody 0.1.0")


@script("unpin")
def _(shell: Shell) -> None:
    scene = shell.begin()
    scene.has()
    scene.api.pin(ACME, "0.1.0")
    shell.both("unpin acme")
    shell.run("unpin nobody")
    shell.run("unpin acme --reason 'two\nlines'")


@script("retry")
def _(shell: Shell) -> None:
    fleet(shell)
    shell.run("retry duff")
    shell.run("retry eve --json")
    shell.both("retry acme", "Nothing has failed.")
    shell.run("retry nobody")
    shell.run("retry")
    shell.run("retry acme --state FAILED")
    scene = fleet(shell)
    scene.meanwhile = [scene.api.begin, scene.api.succeed]
    shell.run("retry eve --wait")
    scene = fleet(shell)
    shell.run("retry --state UPDATE_FAILED", "There is no terminal.")
    shell.run("retry --state UPDATE_FAILED", typed="2\n")
    shell.run("retry --state UPDATE_FAILED", typed="1\n")
    shell.run("retry --label plan=free --yes --json")
    shell.run("retry --label plan=silver --yes", "No tenant has the label.")
    shell.both("retry --state PROVISIONING --version 0.2.0", "No tenant matches.")
    shell.run("retry --version 0.1.0 --not-pinned --tier standard --yes --reason 'It was the network.'")
    shell.run("retry --pinned --yes --wait --timeout 5")
    shell.run("retry --state HAPPY --yes")


@script("delete")
def _(shell: Shell) -> None:
    shell.begin().has()
    shell.run("delete acme --reason 'the contract has ended'")
    shell.begin().has()
    shell.run("delete acme --drain 600 --json")
    scene = shell.begin()
    scene.has()
    scene.meanwhile = [scene.api.begin, scene.api.succeed]
    shell.run("delete acme --wait")
    scene = shell.begin()
    scene.has()
    scene.meanwhile = [scene.api.begin, scene.api.fail]
    shell.run("delete acme --wait", "The delete fails.")
    scene = shell.begin()
    scene.has()
    shell.run("delete acme --force", "There is no terminal.")
    shell.run("delete acme --force", typed="no\n")
    shell.run("delete acme --force", typed="acme\n")
    shell.both("delete acme", "The tenant is being deleted.")
    shell.both("delete nobody")
    scene = shell.begin()
    scene.has()
    scene.api.queues.held = {QUEUE.url: Messages(3, 1, 0), DLQ: Messages(1, 0, 0)}
    scene.api.unfinished_work.held[ACME] = {INBOX: MAX_COUNTED, DELIVERIES: 2}
    shell.both("delete acme", "The tenant has messages and events.")
    scene.api.queues.held = {}
    scene.api.unfinished_work.held[ACME] = {INBOX: 3}
    shell.run("delete acme", "The inbox has events.")
    scene.api.unfinished_work.held[ACME] = {DELIVERIES: 2}
    shell.run("delete acme", "Deliveries wait.")
    shell.run("delete acme --force --yes")
    fleet(shell)
    shell.run("delete --version 0.1.0", "There is no terminal.")
    shell.run("delete --version 0.1.0", typed="1\n")
    shell.run("delete --label plan=gold --yes --json")
    shell.run("delete --state FAILED --tier standard --yes --wait --timeout 5")
    shell.run("delete --not-pinned --tier gold --yes")
    shell.run("delete --label plan=silver --yes", "No tenant has the label.")
    shell.run("delete")
    shell.run("delete acme --drain 600 --force")
    shell.run("delete fred")


@script("get-queue")
def _(shell: Shell) -> None:
    ready, provisioning = Ready(QUEUE, VERSION), Provisioning(execution_arn("create-acme-0.1.0-1"))
    scene = shell.scene
    scene.queue_answers(ready)
    shell.both("get-queue acme")
    scene.queue_answers(provisioning)
    shell.both("get-queue acme", "The queue is being created.")
    scene.queue_answers(provisioning, provisioning, ready)
    shell.run("get-queue acme --wait")
    scene.queue_answers(provisioning)
    shell.run("get-queue acme --wait --timeout 5", "It takes too long.")
    given = Credentials(Access.SEND, "ASIAIOSFODNN7EXAMPLE", "secret", "token", NOON + timedelta(hours=1))
    scene.queue_answers(answer(ACME, ready, given))
    shell.both("get-queue acme --credentials send")
    shell.run("get-queue acme --credentials everything")
    refusals = {
        "The create has failed.": Failed(an_audit(Status.FAILURE, root_cause=QUEUE_TABOO)),
        "The tenant is being deleted.": BeingDeleted(an_audit(Status.STARTED, Operation.DELETE)),
        "The tenant was deleted.": Deleted(an_audit(Status.SUCCESS, Operation.DELETE)),
        "There is no such tenant.": Unknown(),
        "The tenant has no queue.": NotProvisioned(),
        "The fleet is full.": FleetFull(1_900, 1_900),
        "There are too many creates.": TooManyCreates(60, 37),
    }
    for why, refusal in refusals.items():
        scene.queue_answers(answer(ACME, refusal))
        shell.both("get-queue acme", why)
    for why, response in {"Credentials are not enabled.": no_credentials(), "AWS throttles.": throttled()}.items():
        scene.queue_answers(response)
        shell.run("get-queue acme --credentials receive", why)
    shell.run("get-queue a/b")


def throttled() -> Response:
    return try_again_later("DynamoDB throttled the request.")


@script("tenant")
def _(shell: Shell) -> None:
    scene = fleet(shell)
    for name in ("acme", "bob", "carol", "duff", "eve", "fred", "gina", "hal", "ida"):
        shell.run(f"tenant {name}")
    shell.run("tenant acme --json")
    shell.run("tenant duff --json")
    shell.run("tenant acme --before 2026-11-16T12:00:11.000Z")
    shell.run("tenant acme --before noon")
    scene.api.world.stacks.plant(
        Stack(stack_arn(ACME), "UPDATE_COMPLETE", "", "acme", QUEUE, "0.1.0", ours=True, changed_at=NOON)
    )
    shell.both("tenant acme --live")
    shell.run("tenant fred --live", "The tenant has no stack.")
    shell.run("pin bob 0.2.0 --reason 'until the audit is over'")
    shell.run("unpin bob --reason 'the audit is over'")
    shell.run("upgrade bob --to 0.1.0 --allow-downgrade --allow-replacement --yes --reason 'at last'")
    scene.api.begin()
    shell.run("tenant bob")
    shell.both("tenant nobody")
    shell.run("tenant a/b --json")


@script("tenants")
def _(shell: Shell) -> None:
    shell.both("tenants", "There are no tenants.")
    fleet(shell)
    shell.both("tenants")
    shell.run("tenants --state FAILED")
    shell.run("tenants --state update_failed")
    shell.run("tenants --version 0.2.0 --output wide")
    shell.run("tenants --label plan=gold --output name")
    shell.run("tenants --pinned")
    shell.run("tenants --tier standard --limit 2")
    shell.run("tenants --all --prefix c")
    shell.run("tenants --prefix nobody")
    shell.run("tenants --cursor nonsense")
    shell.run("tenants --state HAPPY")
    shell.run("tenants --version newest")
    shell.run("tenants --limit 0")
    shell.run("tenants --all --limit 5")
    shell.run("tenants --output xml")
    shell.run("tenants --output json --limit 1")
    shell.run("tenants --label nosuch=x")
