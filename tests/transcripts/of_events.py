"""What is run of the commands about events. The Events API answers with its documented examples."""

from __future__ import annotations

import json
from pathlib import Path

from orchestrator.events.refusals import EventRefusal
from tests.transcripts.script import script
from tests.transcripts.shell import Shell
from tests.unit.cli.fake_api import EVENT_EXAMPLES

EVENT = "019a91f4-8a6b-7c31-9f0e-2b7d51c4a060"
KEY, SOURCE, FORM, CONNECTION = (f"{kind}_0f1e2d3c4b5a69788796a5b4" for kind in ("key", "src", "form", "conn"))
REPLAY = "rpl_0193f1c04a00d7e8f9a0b1c2"
API_KEY = f"bk_live_{'x' * 43}"
FILTER = {"event_type": "order.paid", "payload": {"total": {"$gte": 100}}}


def interrupt() -> None:
    raise KeyboardInterrupt


def written(name: str, content: object) -> None:
    Path(name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def comes_in(shell: Shell) -> None:
    """Another event comes in."""
    event = {**EVENT_EXAMPLES["models"]["Events"]["events"][0], "event_id": "019a91f4-8e10-7c31-8a44-90c1f7be2f40"}
    shell.events.changed["events"] = {"events": [event], "cursor": None}


def replay_ends(shell: Shell) -> None:
    shell.events.changed[REPLAY] = {"status": "finished", "ended_at": "2026-11-16T12:00:02.000Z"}


@script("events list")
def _(shell: Shell) -> None:
    shell.both("events list acme")
    shell.run("events list acme --since 2h --until 5m --type order.created --status failed --limit 5")
    shell.run(f"events list acme --source {SOURCE} --all")
    shell.run(f"events list acme --form {FORM}")
    shell.run("events list acme --submissions")
    shell.run("events list acme --cursor abc")
    shell.events.changed["events"] = {"events": [], "cursor": None}
    shell.both("events list acme", "There are no events.")
    shell.run("events list acme --all --limit 5")
    shell.run("events list acme --since noon")
    shell.run("events list acme --since 5m --until 2h")
    shell.run("events list acme --status happy")
    shell.run("events list acme --type order.created --submissions")


@script("events show")
def _(shell: Shell) -> None:
    shell.both(f"events show acme {EVENT}")
    shell.run(f"events show acme {EVENT} --raw")
    shell.run(f"events show acme {EVENT} --raw --json")
    shell.run("events show acme no-event")


@script("events tail")
def _(shell: Shell) -> None:
    shell.scene.meanwhile = [interrupt]
    shell.run("events tail acme")
    shell.scene.meanwhile = [lambda: None, interrupt]
    shell.run("events tail acme --type order.created --json")
    shell.scene.meanwhile = [interrupt]
    shell.run("events tail acme --submissions")
    shell.run("events tail acme --submissions --type order.created")


@script("events send")
def _(shell: Shell) -> None:
    written("order.json", {"order": 42})
    written("key", f"{API_KEY}\n")
    shell.both("events send --type order.created order.json --key-file key")
    shell.run("events send --type order.created --key-file key", typed='{"order": 43}\n')
    shell.run("events send --type order.created order.json")
    shell.run("events send --type order.created order.json --key-file order.json")
    shell.run("events send --type order.created missing.json --key-file key")
    shell.run("events send --type order.created key --key-file key")
    shell.run("events send --type 'no type' order.json --key-file key")


@script("events settings")
def _(shell: Shell) -> None:
    shell.both("events settings acme")
    shell.both("events settings acme --plan pro")
    shell.run("events settings acme --plan free --no-inbox --type-index --name 'Acme Ltd'")
    shell.run("events settings acme --plan gold")
    shell.refused_by_events("events settings acme", EventRefusal.NO_SETTINGS)
    shell.refused_by_events("events settings nobody", "unknown-tenant")


@script("events usage")
def _(shell: Shell) -> None:
    shell.both("events usage acme")
    shell.run("events usage acme --month 2026-10")
    shell.run("events usage acme --month october")


@script("events history")
def _(shell: Shell) -> None:
    shell.both("events history acme")
    shell.run("events history acme --limit 3")
    shell.run("events history acme --limit 0")


@script("events purges")
def _(shell: Shell) -> None:
    shell.both("events purges")
    shell.events.changed["purges"] = {"purges": []}
    shell.run("events purges", "Nothing is being purged.")


@script("inbox read")
def _(shell: Shell) -> None:
    shell.both("inbox read acme")
    shell.run("inbox acme", "The group's first command is its default.")
    shell.run("inbox read acme --type order.created --limit 3")
    shell.events.changed["inbox"] = {"events": [], "cursor": None}
    shell.run("inbox read acme", "The inbox is empty.")
    shell.run("inbox read acme --limit 0")


@script("inbox ack")
def _(shell: Shell) -> None:
    shell.both(f"inbox ack acme {EVENT} 019a91f4-8e10-7c31-8a44-90c1f7be2f40")
    shell.run("inbox ack acme no-event")


@script("keys create")
def _(shell: Shell) -> None:
    shell.both("keys create acme --name 'Shop, production' --scope write")
    shell.run("keys create acme --name Reports --scope read --scope write --expires 90")
    shell.run("keys create acme --name Reports --scope everything")
    shell.run("keys create acme --name Reports --scope read --expires soon")
    shell.run("keys create acme --name '' --scope read")
    shell.events.changed["keys"] = {"scopes": ["read"]}
    shell.run("keys create acme --name Reports --scope read", "It can only read.")


@script("keys list")
def _(shell: Shell) -> None:
    shell.both("keys list acme")
    shell.events.changed["keys"] = {"keys": []}
    shell.run("keys list acme", "There are no keys.")


@script("keys rotate")
def _(shell: Shell) -> None:
    shell.both(f"keys rotate acme {KEY}")
    shell.run(f"keys rotate acme {KEY} --overlap 1h")
    shell.run("keys rotate acme no-key")
    shell.refused_by_events(f"keys rotate acme {KEY}", EventRefusal.KEY_NOT_ACTIVE)


@script("keys revoke")
def _(shell: Shell) -> None:
    shell.both(f"keys revoke acme {KEY} --yes")
    shell.run(f"keys revoke acme {KEY}", "There is no terminal.")
    shell.run(f"keys revoke acme {KEY}", typed="yes\n")
    shell.run(f"keys revoke acme {KEY}", typed="no\n")
    shell.refused_by_events(f"keys revoke acme {KEY} --yes", EventRefusal.NO_SUCH_KEY)


@script("sources create")
def _(shell: Shell) -> None:
    written("secret", "s3cret-of-the-provider\n")
    shell.both("sources create acme --name 'GitHub, production' --provider github")
    shell.run("sources create acme --name Shop --provider shopify --secret-file secret")
    shell.run("sources create acme --name Shop --provider shopify --secret-file -", typed="s3cret-of-the-shop\n")
    shell.run(
        "sources create acme --name Own --provider hmac --secret-file secret --header X-Signature --algorithm sha256 "
        "--encoding hex --prefix sha256= --event-type-header X-Type --delivery-id-header X-Id"
    )
    shell.run("sources create acme --name Own --provider nobody")
    shell.run("sources create acme --name Shop --provider shopify --secret-file missing")


@script("sources list")
def _(shell: Shell) -> None:
    shell.both("sources list acme")
    shell.events.changed["sources"] = {"sources": []}
    shell.run("sources list acme", "There are no sources.")


@script("sources pause")
def _(shell: Shell) -> None:
    shell.both(f"sources pause acme {SOURCE}")
    shell.refused_by_events(f"sources pause acme {SOURCE}", EventRefusal.NO_SUCH_SOURCE)


@script("sources resume")
def _(shell: Shell) -> None:
    shell.both(f"sources resume acme {SOURCE}")


@script("sources delete")
def _(shell: Shell) -> None:
    shell.both(f"sources delete acme {SOURCE} --yes")
    shell.run(f"sources delete acme {SOURCE}", "There is no terminal.")
    shell.run(f"sources delete acme {SOURCE}", typed="yes\n")
    shell.refused_by_events(f"sources delete acme {SOURCE} --yes", EventRefusal.HAS_CONNECTIONS)


@script("forms create")
def _(shell: Shell) -> None:
    shell.both("forms create acme --name Contact")
    shell.run(
        "forms create acme --name Contact --allow-origin https://www.example.com --allow-origin https://example.com "
        "--redirect https://www.example.com/thanks --honeypot website --per-minute 5"
    )
    shell.run("forms create acme --name Contact --allow-origin nonsense")
    shell.run("forms create acme --name Contact --per-minute 0")
    shell.events.changed["forms"] = {"origins": []}
    shell.run("forms create acme --name Contact", "Any page may send it.")


@script("forms list")
def _(shell: Shell) -> None:
    shell.both("forms list acme")
    shell.events.changed["forms"] = {"forms": []}
    shell.run("forms list acme", "There are no forms.")


@script("forms update")
def _(shell: Shell) -> None:
    shell.both(f"forms update acme {FORM} --name 'Contact us'")
    shell.run(f"forms update acme {FORM} --allow-origin https://example.com --redirect https://example.com/thanks")
    shell.run(f"forms update acme {FORM} --any-origin --no-redirect --no-honeypot --per-minute 10")
    shell.run(f"forms update acme {FORM} --honeypot website")
    shell.run(f"forms update acme {FORM}")
    shell.run(f"forms update acme {FORM} --allow-origin https://example.com --any-origin")
    shell.run(f"forms update acme {FORM} --redirect https://example.com --no-redirect")
    shell.run(f"forms update acme {FORM} --honeypot website --no-honeypot")
    shell.refused_by_events(f"forms update acme {FORM} --name Other", EventRefusal.NO_SUCH_FORM)


@script("forms pause")
def _(shell: Shell) -> None:
    shell.both(f"forms pause acme {FORM}")


@script("forms resume")
def _(shell: Shell) -> None:
    shell.both(f"forms resume acme {FORM}")


@script("forms delete")
def _(shell: Shell) -> None:
    shell.both(f"forms delete acme {FORM} --yes")
    shell.run(f"forms delete acme {FORM}", "There is no terminal.")
    shell.run(f"forms delete acme {FORM}", typed="yes\n")


@script("connections create")
def _(shell: Shell) -> None:
    written("filter.json", FILTER)
    written("transform.json", {"text": "{{ payload.order }}"})
    shell.both("connections create acme --name Shop --webhook https://shop.example.com/hooks/berth")
    shell.run("connections create acme --name 'Own queue'")
    shell.run("connections create acme --name Zap --zapier https://hooks.zapier.com/hooks/standard/123/abc/")
    shell.run("connections create acme --name Mail --email ops@example.com")
    shell.run(
        f"connections create acme --name Shop --from {SOURCE} --webhook https://shop.example.com/in "
        "--filter-file filter.json --transform-file transform.json --retry 60 --retry 300"
    )
    shell.run("connections create acme --name Shop --webhook https://a.example.com --email ops@example.com")
    shell.run("connections create acme --name Shop --type order.paid --filter-file filter.json")
    shell.run("connections create acme --name Shop --webhook http://127.0.0.1/")
    shell.run("connections create acme --name Shop --retry often")
    shell.run("connections create acme --name Shop --filter-file missing.json")
    shell.run("connections create acme --name Shop --from nowhere")


@script("connections list")
def _(shell: Shell) -> None:
    shell.both("connections list acme")
    shell.events.changed["connections"] = {"connections": []}
    shell.run("connections list acme", "There are no connections.")


@script("connections show")
def _(shell: Shell) -> None:
    shell.both(f"connections show acme {CONNECTION}")
    shell.refused_by_events(f"connections show acme {CONNECTION}", EventRefusal.NO_SUCH_CONNECTION)


@script("connections update")
def _(shell: Shell) -> None:
    written("filter.json", FILTER)
    written("transform.json", {"text": "{{ payload.order }}"})
    shell.both(f"connections update acme {CONNECTION} --name 'Shop, staging'")
    shell.run(f"connections update acme {CONNECTION} --address https://shop.example.com/in --type order.paid")
    shell.run(f"connections update acme {CONNECTION} --filter-file filter.json --transform-file transform.json")
    shell.run(f"connections update acme {CONNECTION} --retry 60 --retry 300")
    shell.run(f"connections update acme {CONNECTION} --no-filter --no-transform --usual-retries")
    shell.run(f"connections update acme {CONNECTION}")
    shell.run(f"connections update acme {CONNECTION} --filter-file filter.json --no-filter")
    shell.run(f"connections update acme {CONNECTION} --transform-file transform.json --no-transform")
    shell.run(f"connections update acme {CONNECTION} --retry 60 --usual-retries")


@script("connections pause")
def _(shell: Shell) -> None:
    shell.both(f"connections pause acme {CONNECTION}")


@script("connections resume")
def _(shell: Shell) -> None:
    shell.both(f"connections resume acme {CONNECTION}")


@script("connections rotate")
def _(shell: Shell) -> None:
    shell.both(f"connections rotate acme {CONNECTION}")


@script("connections test")
def _(shell: Shell) -> None:
    shell.both(f"connections test acme {CONNECTION}")


@script("connections delete")
def _(shell: Shell) -> None:
    shell.both(f"connections delete acme {CONNECTION} --yes")
    shell.run(f"connections delete acme {CONNECTION}", "There is no terminal.")
    shell.run(f"connections delete acme {CONNECTION}", typed="yes\n")


@script("replay start")
def _(shell: Shell) -> None:
    shell.both(f"replay start acme --since 2h --connection {CONNECTION} --yes")
    shell.run(f"replay start acme --since 2h --until 1h --connection {CONNECTION} --only-failed", typed="yes\n")
    shell.run("replay start acme --since 2h --from api --include-delivered --yes")
    shell.scene.meanwhile = [lambda: replay_ends(shell)]
    shell.run(f"replay start acme --since 2h --connection {CONNECTION} --follow --yes")
    shell.run(f"replay start acme --since 2h --connection {CONNECTION}", "There is no terminal.")
    shell.run(f"replay start acme --since 1h --until 2h --connection {CONNECTION} --yes")
    shell.run("replay start acme --since 2h --yes")
    shell.run(f"replay start acme --since 2h --connection {CONNECTION} --only-failed --include-delivered --yes")


@script("replay list")
def _(shell: Shell) -> None:
    shell.both("replay list acme")
    shell.run("replay list acme --limit 1")
    shell.events.changed["replays"] = {"replays": []}
    shell.run("replay list acme", "There are no replays.")


@script("replay show")
def _(shell: Shell) -> None:
    shell.both(f"replay show acme {REPLAY}")
    shell.scene.meanwhile = [lambda: replay_ends(shell)]
    shell.run(f"replay show acme {REPLAY} --follow")
    shell.run("replay show acme no-replay")


@script("replay pause")
def _(shell: Shell) -> None:
    shell.both(f"replay pause acme {REPLAY}")


@script("replay resume")
def _(shell: Shell) -> None:
    shell.both(f"replay resume acme {REPLAY}")


@script("replay cancel")
def _(shell: Shell) -> None:
    shell.both(f"replay cancel acme {REPLAY}")


@script("deliveries")
def _(shell: Shell) -> None:
    shell.both(f"deliveries acme {CONNECTION}")
    shell.run(f"deliveries acme {CONNECTION} --status failed --limit 5")
    shell.run(f"deliveries acme {CONNECTION} --all")
    shell.events.changed["deliveries"] = {"deliveries": [], "cursor": None}
    shell.run(f"deliveries acme {CONNECTION}", "There are no deliveries.")
    shell.run(f"deliveries acme {CONNECTION} --status happy")


@script("attempts")
def _(shell: Shell) -> None:
    shell.both(f"attempts acme {EVENT}")
    shell.events.changed["attempts"] = {"deliveries": []}
    shell.run(f"attempts acme {EVENT}", "The event goes to no connection.")


@script("resend")
def _(shell: Shell) -> None:
    shell.both(f"resend acme {EVENT}")
    shell.run(f"resend acme {EVENT} --connection {CONNECTION}")


@script("listen")
def _(shell: Shell) -> None:
    shell.scene.meanwhile = [interrupt]
    shell.run("listen acme")
    shell.scene.meanwhile = [lambda: comes_in(shell), interrupt]
    shell.run("listen acme --type order.created", "An event comes in.")
    shell.events.changed.clear()
    shell.scene.meanwhile = [lambda: comes_in(shell), interrupt]
    shell.run("listen acme --json", "An event comes in.")
    shell.scene.meanwhile = [interrupt]
    shell.run("listen acme --submissions")
    written("secret", "no secret\n")
    shell.run("listen acme --submissions --type order.created")
    shell.run("listen acme --secret-file secret")
    shell.run("listen acme --forward https://example.com/")
    shell.run("listen acme --forward http://127.0.0.1:3000/ --secret-file secret")
