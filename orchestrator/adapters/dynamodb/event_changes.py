"""The record of changes of tenants' configuration, in the table of events: there its rows expire by themselves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.event_unreadable import read_row
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import Item, n, s, text
from orchestrator.events.changes import KEPT_FOR
from orchestrator.events.event_ids import event_timestamp
from orchestrator.events.records import Change, ChangeKind, TenantEpoch

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoChanges:
    """Implements :class:`orchestrator.events.ports.RecordedChanges`."""

    def __init__(self, client: DynamoDBClient, events_table: str) -> None:
        self._reads = Reads(client, events_table)

    def changes(self, life: TenantEpoch, *, after: str | None, limit: int) -> tuple[Sequence[Change], str | None]:
        rows, cursor = self._reads.page_of_newest(event_keys.changes_pk(life), after=after, limit=limit)
        read = (read_row(row, lambda row: _change_from(life, row)) for row in rows)
        return [each for each in read if isinstance(each, Change)], cursor


def change_row(change: Change) -> Item:
    """The digest of the row keeps two changes of the same moment apart."""
    attributes: Item = {
        "changed_by": s(change.by),
        "kind": s(change.kind),
        "subject": s(change.subject),
        "before": s(json.dumps(dict(change.before))),
        "after": s(json.dumps(dict(change.after))),
        "ttl": n(int((change.at + KEPT_FOR).timestamp())),
    }
    digest = hashlib.sha256(json.dumps(attributes, sort_keys=True).encode()).hexdigest()
    return {**event_keys.change_key(change.life, event_timestamp(change.at), digest[:16]), **attributes}


def _change_from(life: TenantEpoch, row: Mapping[str, Any]) -> Change:
    return Change(
        life=life,
        at=event_keys.moment_of_change(row["sk"]["S"]),
        by=row["changed_by"]["S"],
        kind=ChangeKind(row["kind"]["S"]),
        subject=text(row, "subject") or "",
        before=_texts(row["before"]["S"]),
        after=_texts(row["after"]["S"]),
    )


def _texts(document: str) -> dict[str, str]:
    return {str(name): str(value) for name, value in json.loads(document).items()}
