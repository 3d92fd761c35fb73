"""The next steps with something of the event plane, and the warnings of commands. The console draws the steps."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.cli.api import Document
from orchestrator.cli.next_step import NextStep

_WARNINGS: Mapping[str, str] = {
    "connection": "This deletes connection {} of tenant {}. Its unfinished deliveries fail.",
    "source": "This deletes source {} of tenant {}, with its URL and its secret.",
    "form": "This deletes form {} of tenant {}, with its URL.",
    "key": "Whatever uses the API key {} of tenant {} stops working.",
}


def warning_about(kind: str, resource_id: str, tenant: str) -> str:
    """The warning of a command and of the console before they delete or revoke something."""
    return _WARNINGS[kind].format(resource_id, tenant)


def connection_steps(connection: Document) -> list[NextStep]:
    """Everything that can be done with a connection, and why what cannot be done now cannot."""
    of, status = f"{connection['tenant_id']} {connection['connection_id']}", connection["status"]
    disabled = "It is disabled. Let it deliver again first." if status == "disabled" else None
    paused = "It is paused already." if status == "paused" else None
    return [
        NextStep(
            "resume",
            "Let it deliver again",
            f"berth connections resume {of}",
            "It is neither paused nor disabled." if status == "active" else None,
        ),
        NextStep("pause", "Pause it", f"berth connections pause {of}", disabled or paused, suggested=False),
        NextStep("test", "Send a test event", f"berth connections test {of}", disabled, suggested=False),
        NextStep(
            "replay",
            "Send events of a time again",
            f"berth replay {connection['tenant_id']} --connection {connection['connection_id']} --since 2h",
            disabled,
            suggested=False,
        ),
        NextStep("update", "Change it", f"berth connections update {of} --name TEXT", suggested=False),
        NextStep(
            "rotate",
            "Replace its secret",
            f"berth connections rotate {of}",
            None if connection["signed"] else "Only webhooks are signed.",
            suggested=False,
        ),
        NextStep("delete", "Delete it", f"berth connections delete {of}", suggested=False),
    ]


def source_steps(source: Document) -> list[NextStep]:
    return _address_steps("sources", source, source["source_id"])


def form_steps(form: Document) -> list[NextStep]:
    return _address_steps("forms", form, form["form_id"])


def _address_steps(group: str, address: Document, resource_id: str) -> list[NextStep]:
    of, paused = f"{address['tenant_id']} {resource_id}", address["status"] == "paused"
    return [
        NextStep("pause", "Pause it", f"berth {group} pause {of}", "It is paused already." if paused else None),
        NextStep("resume", "Let it accept again", f"berth {group} resume {of}", None if paused else "It accepts."),
        NextStep("delete", "Delete it", f"berth {group} delete {of}"),
    ]


def key_steps(key: Document) -> list[NextStep]:
    of = f"{key['tenant_id']} {key['key_id']}"
    over = None if key["status"] == "active" else f"It is {key['status']}."
    return [
        NextStep("rotate", "Replace it", f"berth keys rotate {of}", over),
        NextStep("revoke", "Revoke it", f"berth keys revoke {of}", over),
    ]


def replay_steps(replay: Document) -> list[NextStep]:
    of, status = f"{replay['tenant_id']} {replay['replay_id']}", replay["status"]
    over = f"It is {status}." if replay["ended_at"] else None
    return [
        NextStep(
            "pause", "Pause it", f"berth replay pause {of}", over or (None if status == "running" else "It is paused.")
        ),
        NextStep(
            "resume", "Let it go on", f"berth replay resume {of}", over or (None if status == "paused" else "It runs.")
        ),
        NextStep("cancel", "Cancel it", f"berth replay cancel {of}", over),
    ]


def resend_step(attempts: Document, delivery: Document | None = None) -> NextStep:
    """Sends an event again: to one connection, or to all to which it failed."""
    command = f"berth resend {attempts['tenant_id']} {attempts['event_id']}"
    if delivery:
        name = delivery["connection_name"] or "a deleted connection"
        refusal = None if delivery["connection_name"] else "The connection was deleted."
        return NextStep(
            "resend", f"Send it again to {name}", f"{command} --connection {delivery['connection_id']}", refusal
        )
    failed = any(each["status"] == "failed" for each in attempts["deliveries"])
    refusal = None if failed else "It has failed to no connection."
    return NextStep("resend", "Send it again to all connections to which it failed", command, refusal)
