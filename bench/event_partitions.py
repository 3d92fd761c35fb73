"""One tenant at 1,000 events per second, on partitions that take 1,000 write units per second each.

Time is simulated. Our events are accepted by the product's own code, on a client that counts write units by partition.
The documents' designs make the writes that :mod:`bench.event_designs` lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, cast

from botocore.exceptions import ClientError

from bench.event_designs import DESIGNS, DISTINCT, Design, DesignWrite
from bench.item_sizes import INDEXES, index_rows, put_units, write_units
from bench.measure import Result
from orchestrator.adapters.dynamodb.event_keys import STATUS_INDEX
from orchestrator.adapters.dynamodb.event_reads import DynamoEventReads
from orchestrator.adapters.dynamodb.events import DynamoEventWrites
from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.accepting import Accepted, Accepting, NewEvent
from orchestrator.events.authorising import Standing
from orchestrator.events.plans import PLANS, Plan
from orchestrator.events.quotas import Quotas, month_of
from orchestrator.events.records import Content, EventSettings, TenantEpoch

EVENTS_PER_SECOND = 1_000
SECONDS = 10
UNITS_PER_SECOND = 1_000
"""The write units that a partition of a table or an index takes per second."""

_START = datetime(2026, 1, 1, tzinfo=UTC)
_PAYLOAD = b'{"order": 42, "total": "19.90", "currency": "EUR"}'


@dataclass
class Partitions:
    """Counts write units per partition and simulated second. Nothing is saved up for a burst."""

    second: int = 0
    used: Counter[str] = field(default_factory=Counter)

    def at(self, second: int) -> None:
        if second != self.second:
            self.second = second
            self.used.clear()

    def take(self, units: Mapping[str, int]) -> bool:
        """``False`` if one of the partitions has nothing left: then none of them is charged."""
        if any(self.used[name] + number > UNITS_PER_SECOND for name, number in units.items()):
            return False
        self.used.update(units)
        return True


def events_partitions(seconds: int = SECONDS) -> list[Result]:
    shards = PLANS[Plan.PRO].shards
    what = f"events: {EVENTS_PER_SECOND:,} per second of one tenant for {seconds} s"
    ours = f"{what}, {shards} shards"
    total = EVENTS_PER_SECOND * seconds
    return [
        Result(f"{ours}: refused", total - accepted_by_berth(seconds, acknowledge=False), "events", "0"),
        Result(
            f"{ours}, each acknowledged at once: throttled once",
            total - accepted_by_berth(seconds, acknowledge=True),
            "events",
            "",
        ),
        *(
            Result(
                f"{what}, delivered at once, as {design.document} has it: throttled",
                total - done_by_design(design, seconds),
                "events",
                "",
            )
            for design in DESIGNS
        ),
    ]


def done_by_design(design: Design, seconds: int) -> int:
    """The number of events of which no write was throttled."""
    partitions = Partitions()

    def one(number: int) -> bool:
        # All writes are tried, because a throttled one does not keep the others of an event from being made.
        taken = [partitions.take(_named(write, number)) for write in design.writes]
        return all(taken)

    return _count(partitions, one, seconds)


def _named(write: DesignWrite, number: int) -> dict[str, int]:
    return {f"{name} {number}" if name in DISTINCT else name: units for name, units in write.units.items()}


def accepted_by_berth(seconds: int, *, acknowledge: bool) -> int:
    """The number of events of which no write was throttled. With the inbox and the index by type, as by default."""
    partitions, clock = Partitions(), _SimulatedClock()
    table: Any = _ThrottledTable(partitions)
    random = Random(1)
    accepting = Accepting(
        events=DynamoEventWrites(table, "events"),
        contents=cast("Any", None),
        quotas=Quotas(monotonic=lambda: clock.seconds),
        clock=clock,
        random_below=random.randrange,
    )
    acknowledgements, standing = DynamoEventReads(table, "events"), _standing()
    life = standing.settings.life

    def one(number: int) -> bool:
        clock.seconds = number / EVENTS_PER_SECOND
        try:
            outcome = accepting.accept(standing, NewEvent("order.created", Content(_PAYLOAD), source_ip="192.0.2.1"))
            if not isinstance(outcome, Accepted):
                return False
            return not acknowledge or acknowledgements.acknowledge(life, outcome.event_id, clock.now())
        except Throttled:
            return False

    return _count(partitions, one, seconds)


def _count(partitions: Partitions, one: Callable[[int], bool], seconds: int) -> int:
    done = 0
    for number in range(EVENTS_PER_SECOND * seconds):
        partitions.at(number // EVENTS_PER_SECOND)
        done += one(number)
    return done


def _standing() -> Standing:
    life = TenantEpoch(TenantId.parse("0" * 36), "0" * 16)
    settings = EventSettings(
        life,
        incarnation="1",
        plan=Plan.PRO,
        shards=PLANS[Plan.PRO].shards,
        inbox=True,
        type_index=True,
        created_at=_START,
        updated_at=_START,
    )
    return Standing(settings, used=0, month=month_of(_START))


@dataclass
class _SimulatedClock:
    seconds: float = 0.0

    def now(self) -> datetime:
        return _START + timedelta(seconds=self.seconds)


@dataclass
class _ThrottledTable:
    """The calls of a DynamoDB client that accept and acknowledge an event."""

    partitions: Partitions
    _rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    def put_item(self, *, Item: dict[str, Any], **_: Any) -> dict[str, Any]:  # noqa: N803 - boto3's name
        self._take(Item, put_units(Item))
        self._rows[Item["sk"]["S"]] = Item
        return {}

    def update_item(self, *, Key: dict[str, Any], **_: Any) -> dict[str, Any]:  # noqa: N803 - boto3's name
        """An acknowledgement: the row is written, and leaves the index by status."""
        row = self._rows.pop(Key["sk"]["S"])
        left = index_rows(row)[STATUS_INDEX]
        self._take(row, {"table": write_units(row), STATUS_INDEX: write_units(left)})
        return {}

    def _take(self, row: dict[str, Any], units: Mapping[str, int]) -> None:
        keys = {"table": "pk"} | {index: names[0] for index, names in INDEXES.items()}
        if not self.partitions.take({f"{place} {row[keys[place]]['S']}": number for place, number in units.items()}):
            code = "ProvisionedThroughputExceededException"
            raise ClientError({"Error": {"Code": code, "Message": "The partition is throttled."}}, "PutItem")
