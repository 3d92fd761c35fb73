"""The hop count, which ends loops of events.

A connection may deliver to the address of a source, by mistake or through other systems, so an event could run in
circles. Every delivery carries the number of deliveries that led to it, and the fifth is not accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.common.errors import InvalidRequest

HOPS_HEADER = "berth-hops"
"""The header, in lower case. A delivery of an event that came in without it is the first hop, and carries a 1."""
HOPS_METADATA = "hops"
"""The name in an event's metadata under which the hops are kept, so that its own deliveries go on counting."""
MAX_HOPS = 4

_NUMBER = re.compile(r"[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class TooManyHops:
    hops: int
    limit: int = MAX_HOPS


def hops_of(headers: Mapping[str, str]) -> int | TooManyHops:
    """The number of hops that a request has behind it. ``headers`` have names in lower case."""
    given = headers.get(HOPS_HEADER)
    if given is None:
        return 0
    # API Gateway joins headers with the same name by commas. The most hops count.
    numbers = [number.strip() for number in given.split(",")]
    if not all(_NUMBER.fullmatch(number) for number in numbers):
        raise InvalidRequest("The header Berth-Hops is not a number. Leave it out: only Berth itself sends it.")
    hops = max(int(number) for number in numbers)
    return hops if hops <= MAX_HOPS else TooManyHops(hops)


def hops_metadata(hops: int) -> dict[str, str]:
    """The metadata of an event. Most events have no hops behind them, and nothing is stored."""
    return {HOPS_METADATA: str(hops)} if hops else {}


def next_hop(metadata: Mapping[str, str]) -> int:
    """The number that a delivery of an event with this metadata carries."""
    return int(metadata.get(HOPS_METADATA, "0")) + 1
