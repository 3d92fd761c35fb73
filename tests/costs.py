"""docs/costs.json has prices, and counts that other tests hold to the code. The tables of docs/costs.md follow from it.

``python -m tests.costs`` writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "costs.md"
COUNTS: dict[str, dict[str, Any]] = json.loads((DOCS / "costs.json").read_text(encoding="utf-8"))
PRICES: dict[str, float] = COUNTS["prices"]
MONTHLY: dict[str, float] = COUNTS["prices per month"]
OPERATIONS: dict[str, dict[str, float]] = COUNTS["operations"]
MONTH, HOUR = timedelta(days=30), timedelta(hours=1)
PRICED = {
    "state transitions": "state transition",
    "function calls": "function call",
    "reads": "read",
    "write units": "write unit",
    "SQS": "SQS request",
    "S3": "S3 request",
}
"""The price of each counted column. CloudFormation is free."""
CALL_KB, ACCESS_KB, TRANSITION_KB = 0.5, 0.5, 2.0
"""The log lines of a function call, of a request in the API's access log, and of a state transition."""
SCHEDULED = 3.0
"""A scheduled call of a function that finds nothing, per million."""


def per_million(counted: Mapping[str, float], *, requests: int = 0) -> float:
    """The cost of a million of these in dollars; ``requests`` are those to the API."""
    used = {PRICED[column]: number for column, number in counted.items() if column in PRICED}
    transitions = used.get("state transition", 0)
    # Each row is also written to the index. Only executions are traced.
    used["write unit"] = used.get("write unit", 0) * 2
    used["KB of logs"] = transitions * TRANSITION_KB + used.get("function call", 0) * CALL_KB
    used |= {"request to the API": requests, "trace": 1 if transitions else 0}
    return sum(PRICES[name] * number for name, number in used.items())


def call(seconds: float, *, gigabytes: float = 0.25) -> float:
    """The price of a million function calls that take so long."""
    return 0.20 + gigabytes * seconds * 13.33


def idle() -> dict[str, dict[str, float]]:
    """What each stack costs per month when it is not used, by its parts."""
    sweep = {"function calls": 1, "reads": COUNTS["event calls"]["sweep with nothing to do"]["reads"] / 2}
    each = {
        "alarms": MONTHLY["alarm"],
        "KMS keys": MONTHLY["KMS key"],
        "hours in which surveys write a metric": MONTHLY["metric"] / (MONTH / HOUR),
        "settlings, every 5 minutes": per_million(OPERATIONS["settling"]) / 1e6,
        # Reads of an index are eventually consistent, and cost half.
        "sweeps, every minute": per_million(sweep) / 1e6,
        "requests with which Lambda polls empty queues": PRICES["SQS request"] / 1e6,
    }
    return {
        stack: {name: number * each.get(name, SCHEDULED / 1e6) for name, number in parts.items()}
        for stack, parts in COUNTS["idle"].items()
    }


def _rollout() -> float:
    """The update and the turn of a tenant, at the concurrency of a large fleet."""
    turn = OPERATIONS["turn in a rollout, without the update"]
    transitions = OPERATIONS["turn in a rollout with 50 in flight"]["state transitions"]
    waited = {
        **turn,
        # AWS charges for the start of each of the map's children. To ask the gate again is 3 transitions and a call.
        "state transitions": transitions + 1,
        "function calls": turn["function calls"] + (transitions - turn["state transitions"]) / 3,
    }
    return per_million(OPERATIONS["update that changes the stack"]) + per_million(waited)


def _tenant() -> float:
    """A million tenants, per month: surveys, which store a list of stacks, and 10 KB of rows each."""
    surveys = COUNTS["idle"]["control plane"]["surveys, every 6 hours"]
    look = PRICES["SQS request"] + 0.08 * PRICES["read"] + 0.09 * PRICES["write unit"] + 0.5 * 0.02 * 13.33
    return surveys * look + 10 * (0.25 + 0.25 + 0.20)


def _tenant_with_events() -> float:
    """A million tenants with event settings that get no events, per month."""
    calls = COUNTS["event calls"]
    # The list of tenants is one request for many of them, and so is the list of open purges.
    reads = calls["search for deleted tenants, one tenant"]["reads"] - 2
    reads += calls["counts for bills, one tenant without events"]["reads"] - 1
    hourly = reads * PRICES["read"] + 0.25 * 0.02 * 13.33
    return MONTH / HOUR * hourly + 30 * PRICES["write unit"]


def _waiting_connection() -> float:
    """A million connections whose deliveries wait, per month: looked at every 15 minutes, and listed by each sweep."""
    calls = COUNTS["event calls"]
    idle, look = (
        calls[name]["reads"] for name in ("sweep with nothing to do", "sweep that looks at one paused connection")
    )
    # The last of the reads is consistent. The others are those of indexes.
    looks = MONTH / timedelta(minutes=15) * ((look - idle - 1) / 2 + 1)
    return (looks + MONTH / timedelta(minutes=1) / 8) * PRICES["read"]


def request_of_a_producer(seconds: float) -> float:
    """A million requests of producers to the Events API."""
    return PRICES["request to the API"] + call(seconds) + (CALL_KB + ACCESS_KB) * PRICES["KB of logs"]


def _event(path: str, seconds: float, together: int) -> float:
    return request_of_a_producer(seconds) / together + COUNTS["events"][path]["write units"] * PRICES["write unit"]


def _delivery(together: int) -> float:
    path = COUNTS["deliveries"]["one connection, first try"]
    shared = 2 * 0.20 + 0.25 * (0.05 + 0.25) * 13.33 + 2 * CALL_KB * PRICES["KB of logs"] + 3 * PRICES["SQS request"]
    # Its connections are read when it is dispatched.
    own = (path["read units"] + 1) * PRICES["read"] + path["write units"] * PRICES["write unit"]
    return shared / together + own + 0.5 * PRICES["KB of logs"]


def _warm() -> float:
    """Looking every minute whether warm stacks are to be made. One of the reads is of an index."""
    look = OPERATIONS["look at full warm stacks"]
    return MONTH / timedelta(minutes=1) * per_million({**look, "reads": look["reads"] - 0.5}) / 1e6


def _taking() -> float:
    """A million new tenants that take a warm stack."""
    row = COUNTS["getQueue"]["a new tenant that takes a warm stack"]
    return per_million({"function calls": 1, "reads": row["reads"], "write units": 2 * row["rows"]}, requests=1)


def totals() -> dict[str, float]:
    """The page's first table, in dollars."""
    ready = PRICES["request to the API"] + call(0.01) + PRICES["read"] + ACCESS_KB * PRICES["KB of logs"]
    wait = per_million(OPERATIONS["wait for a turn"]) - PRICES["trace"]  # Its execution is traced anyway.
    own_event = PRICES["function call"] + CALL_KB * PRICES["KB of logs"] + PRICES["event on a bus"]
    both = "accept, type index and inbox"
    return {
        "a control plane without tenants, per month": sum(idle()["control plane"].values()),
        "the event plane without events, per month, beyond that": sum(idle()["event plane"].values()),
        "1,000 tenants, per month, beyond that": _tenant() / 1_000,
        "1,000 tenants with event settings, per month, beyond that": _tenant_with_events() / 1_000,
        "1,000 connections whose deliveries wait, per month, beyond that": _waiting_connection() / 1_000,
        "warm stacks of one tier, per month, beyond that": _warm(),
        **{
            f"1,000 {name}": per_million(OPERATIONS[operation], requests=1) / 1_000
            for name, operation in (
                ("creates", "create"),
                ("updates that change the stack", "update that changes the stack"),
                ("updates that only record", "update that only records"),
                ("deletes", "delete"),
            )
        },
        "1,000 creates that wait for their turn, beyond that": wait / 1_000,
        "1,000 new tenants that take a warm stack, beyond the stack's create and an update": _taking() / 1_000,
        "a rollout that updates the stacks of 1,000 tenants": _rollout() / 1_000,
        "1 million calls of getQueue": ready,
        "1 million events, sent one by one": _event(both, 0.01, 1),
        "1 million events, sent in batches of 25": _event(both, 0.1, 25),
        "1 million acknowledgements, 100 per request": _event("acknowledge", 0.4, 100),
        "1 million deliveries at the first try, one by one": _delivery(1),
        "1 million deliveries at the first try, ten per function call": _delivery(10),
        "1 million requests for credentials for events": request_of_a_producer(0.1) + 2 * PRICES["read"],
        "1 million of Berth's own events, one per function call": own_event,
    }


def open_console() -> float:
    """An hour of the page that asks most, in dollars. The operators' function has 1,769 MB, for 100 ms."""
    request = PRICES["request to the API"] + (CALL_KB + ACCESS_KB) * PRICES["KB of logs"]
    fleet, events = request + call(0.1, gigabytes=1769 / 1024), request + PRICES["function call"]
    return max(
        3600 / page["seconds"] * (page.get("requests", 0) * fleet + page.get("of events", 0) * events) / 1e6
        for page in COUNTS["pages"].values()
    )


def _table(names: list[str], rows: Mapping[str, list[str]]) -> str:
    lines = [["", *names], *([name, *cells] for name, cells in rows.items())]
    head, *content = (" ".join(["|", *(f"{cell} |" if cell else "|" for cell in cells)]) for cells in lines)
    return "\n".join([head, "|" + "---|" * (len(names) + 1), *content])


def page() -> str:
    """The page with its tables derived anew. Its text is kept."""
    columns = [*PRICED, "CloudFormation"]
    parts = {
        f"{name} ({stack})": [f"{COUNTS['idle'][stack][name]:,}", f"{cost:.2f}"]
        for stack, costs in idle().items()
        for name, cost in costs.items()
    }
    tables = iter(
        (
            _table(["USD"], {name: [f"{cost:.2f}"] for name, cost in totals().items()}),
            _table(["USD per million"], {name: [f"{price:g}"] for name, price in PRICES.items()}),
            _table(
                columns,
                {
                    name: [f"{row[each]:g}" if each in row else "" for each in columns]
                    for name, row in OPERATIONS.items()
                },
            ),
            _table(["number per month", "USD per month"], parts),
        )
    )
    return re.sub(r"(^\|.*\n)+", lambda _: f"{next(tables)}\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def figures() -> list[str]:
    """What the page says in its text."""
    sizes = [row["bytes of payload"] for row in COUNTS["sizes"].values()]
    failed, again = (
        COUNTS["deliveries"][name]["write units"] * PRICES["write unit"]
        for name in ("first try that fails", "second try that fails")
    )
    return [
        f"A refused one costs {request_of_a_producer(0.01):.2f} per million",
        f"at most {max(row.get('reads', 0) for row in COUNTS['commands'].values())} reads",
        f"costs at most {open_console():.2f} per hour",
        f"{min(sizes)} to {max(sizes)} bytes of payload",
        f"is {failed:.2f} per million for the first try and {again:.2f} for each further one",
        f"A dashboard is {MONTHLY['dashboard']:.2f} per month",
    ]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
