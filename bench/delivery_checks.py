"""The events of the delivery test, and the checks after it: every living receiver has every event that is for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.delivery_receivers import Arrival, Kind
from bench.measure import percentile

RECEIVERS_PER_TENANT = 2
_EVERY = 10
"""One of so many receivers is dead, and one is slow."""


def kinds_of(receivers: int) -> list[Kind]:
    """A tenth of the receivers is dead, and a tenth slow. Of the dead ones, every second hangs."""
    return [_kind(number) for number in range(receivers)]


def _kind(receiver: int) -> Kind:
    match receiver % _EVERY:
        case 3:
            return Kind.HANGING if receiver // _EVERY % 2 else Kind.REFUSING
        case 7:
            return Kind.SLOW
    return Kind.QUICK


def tenant_of(receiver: int) -> int:
    return receiver // RECEIVERS_PER_TENANT


def event_type_of(receiver: int) -> str:
    """Each of a tenant's connections wants one type, so that every event has one receiver."""
    return f"load.part-{receiver % RECEIVERS_PER_TENANT}"


@dataclass(frozen=True, slots=True)
class Published:
    """An event that was handed in."""

    event_id: str
    receiver: int
    at: float
    """When it was due to be handed in, whether or not the producer was late."""


@dataclass(frozen=True)
class Checked:
    """The results for the events of living receivers."""

    lost: Sequence[str]
    misdirected: Sequence[str]
    repeated: int
    """Arrivals beyond the first one of an event."""
    milliseconds: Mapping[Kind, Sequence[float]]
    """From handing in to the first arrival."""

    def percentile(self, kind: Kind, part: int) -> float:
        times = self.milliseconds[kind]
        return percentile(times, part) if times else 0.0


def check(published: Iterable[Published], arrivals: Mapping[str, Sequence[Arrival]], kinds: Sequence[Kind]) -> Checked:
    """``kinds`` are those of the receivers, in their order."""
    lost: list[str] = []
    misdirected: list[str] = []
    repeated: Counter[str] = Counter()
    times: dict[Kind, list[float]] = {kind: [] for kind in Kind if not kind.is_dead}
    known: set[str] = set()
    for event in published:
        known.add(event.event_id)
        found = arrivals.get(event.event_id, ())
        misdirected += [
            f"{event.event_id}: for receiver {event.receiver}, arrived at {each.receiver}"
            for each in found
            if each.receiver != event.receiver
        ]
        kind = kinds[event.receiver]
        if kind.is_dead:
            continue
        if not found:
            lost.append(f"{event.event_id}: did not arrive at receiver {event.receiver} ({kind})")
            continue
        repeated[event.event_id] = len(found) - 1
        times[kind].append((min(each.at for each in found) - event.at) * 1000)
    misdirected += [f"{event_id}: arrived, but was not handed in" for event_id in arrivals if event_id not in known]
    return Checked(lost, misdirected, repeated.total(), times)
