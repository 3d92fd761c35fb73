"""The arithmetic of docs/costs.md, from its own prices and counts."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from bench.delivery_capacity import PATHS
from bench.event_capacity import FLOOR
from bench.function_memory import OPERATORS, SIZES, WHOLE_PROCESSOR, billed_milliseconds, dollars_per_million
from bench.growth import PLANNING_SECONDS
from orchestrator.events.delivery.sweeping import LOOKED_AT_EVERY
from orchestrator.pool.maintaining import AFTER_FAILURE
from orchestrator.reconciling.health import POOL_EVERY
from tests.costs_page import PAGE, table, totals

BENCH = Path(__file__).parents[2] / "bench" / "results.json"
PRICED = {
    "state transitions": "state transition",
    "function calls": "function call",
    "reads": "read",
    "write units": "write unit",
    "SQS": "SQS request",
    "S3": "S3 request",
}
"""The name of each counted column among the prices. CloudFormation is free."""
PRICES = {name: float(row["USD per million"]) for name, row in table("Prices").items()}
CALL_KB, ACCESS_KB = 0.5, 0.5
"""The log lines of a function call, and of a request in the API's access log."""
TURN = "turn in a rollout, without the update"


def counts(name: str) -> dict[str, float]:
    return {column: float(cell) for column, cell in table("Counted")[name].items() if cell}


def per_million(counted: dict[str, float], *, requests: int) -> float:
    """The cost of a million of these in dollars; ``requests`` are those to the API."""
    used = {PRICED[column]: number for column, number in counted.items() if column in PRICED}
    used["write unit"] = used.get("write unit", 0) * 2
    used["KB of logs"] = used.get("state transition", 0) * 2 + used["function call"] * CALL_KB
    # Only executions are traced.
    used |= {"request to the API": requests, "trace": 1 if used.get("state transition") else 0}
    return sum(PRICES[name] * number for name, number in used.items())


def measured() -> dict[str, float]:
    """The results of the benchmark, by their names."""
    return {each["name"]: each["value"] for each in json.loads(BENCH.read_text(encoding="utf-8"))}


def turn_of_the_bench() -> tuple[float, float]:
    """Transitions per turn where few tenants move at once, and where many do."""
    found = [value for name, value in measured().items() if "transitions per turn" in name]
    return min(found), max(found)


@pytest.mark.parametrize(
    ("total", "counted"),
    [
        ("1,000 creates", "create"),
        ("1,000 updates that change the stack", "update that changes the stack"),
        ("1,000 updates that only record", "update that only records"),
        ("1,000 deletes", "delete"),
    ],
)
def test_an_operation_costs_what_its_counts_cost(total: str, counted: str) -> None:
    assert totals()[total] == f"{per_million(counts(counted), requests=1) / 1_000:.2f}"


def test_a_create_that_waits_costs_what_it_does_beyond_a_create() -> None:
    counted = {column: float(cell) for column, cell in table("Creates that wait")["wait for a turn"].items()}
    # Its execution is traced anyway.
    cost = per_million(counted, requests=0) - PRICES["trace"]
    assert totals()["1,000 creates that wait for their turn, beyond that"] == f"{cost / 1_000:.2f}"
    page = PAGE.read_text(encoding="utf-8")
    assert f"= {cost:.2f} per million more" in page
    states = measured()["10,000 creates at once, with the gate, quiet: states that a create enters, mean"]
    assert f"has {states} transitions per create on average" in page
    assert round(states - counts("create")["state transitions"]) == counted["state transitions"]


def test_a_turn_takes_the_transitions_that_the_bench_has() -> None:
    assert counts(TURN)["state transitions"] == turn_of_the_bench()[0]


def turn_of_a_large_rollout() -> dict[str, float]:
    """A turn that waits as often as in the benchmark."""
    straight, waiting = turn_of_the_bench()
    turn = counts(TURN)
    turn["function calls"] += (waiting - straight) / 3
    # AWS charges for the start of each of the map's children.
    return turn | {"state transitions": waiting + 1}


def test_a_rollout_costs_its_updates_and_turns() -> None:
    update = per_million(counts("update that changes the stack"), requests=0)
    turn = per_million(turn_of_a_large_rollout(), requests=0)
    assert totals()["a rollout that updates the stacks of 1,000 tenants"] == f"{(update + turn) / 1_000:.2f}"


def test_the_sums_in_the_text_are_those_of_the_counts() -> None:
    create, update = counts("create"), counts("update that changes the stack")
    turn = turn_of_a_large_rollout()
    sums = {
        r"So 1,000 creates are .+? = ([\d.,]+)\s+per million": per_million(create, requests=1),
        r"Per tenant there is an update, ([\d.,]+) per million": per_million(update, requests=0),
        r"and a turn: .+? = ([\d.,]+) per million": per_million(turn, requests=0),
        r"state transitions: ([\d.,]+) for 1,000 tenants": 1_000
        * (turn["state transitions"] + update["state transitions"]),
    }
    page = PAGE.read_text(encoding="utf-8")
    for text, expected in sums.items():
        found = re.search(text, page, re.DOTALL)
        assert found is not None, text
        assert float(found[1].replace(",", "")) == pytest.approx(expected, abs=0.0051), text


def test_the_page_has_the_first_update_to_a_release_as_the_bench_has_it() -> None:
    results = measured()
    transitions, calls = (
        results[f"first update to a release: {what}"]
        for what in ("state transitions", "calls of functions, the stack's own included")
    )
    # The page counts the call of the API's function, too.
    assert f"takes {transitions} transitions and {calls + 1} function calls" in PAGE.read_text(encoding="utf-8")


def test_each_stack_costs_the_sum_of_its_parts_when_idle() -> None:
    parts = table("Idle").values()
    assert [f"{float(part['number']) * float(part['USD each']):.2f}" for part in parts] == [p["USD"] for p in parts]
    settling = table("Idle")["settlings, every 5 minutes"]["USD each"]
    assert settling == f"{per_million(counts('settling'), requests=0) / 1e6:.7f}"
    # Reads of an index are eventually consistent, and cost half.
    reads = float(table("Requests of events")["sweep with nothing to do"]["reads"]) / 2
    sweep = per_million({"function calls": 1, "reads": reads}, requests=0)
    assert table("Idle")["sweeps, every minute (event plane)"]["USD each"] == f"{sweep / 1e6:.7f}"
    exact = dict.fromkeys((False, True), 0.0)
    for name, part in table("Idle").items():
        exact[name.endswith(" (event plane)")] += float(part["number"]) * float(part["USD each"])
    assert totals()["a control plane without tenants, per month"] == f"{exact[False]:.2f}"
    assert totals()["the event plane without events, per month, beyond that"] == f"{exact[True]:.2f}"
    metric = table("Idle")["hours in which surveys write a metric"]["USD each"]
    assert metric == f"{0.30 / 720:.7f}"


def test_a_tenant_costs_its_part_of_each_survey() -> None:
    surveys = float(table("Idle")["surveys, every 6 hours"]["number"])
    listed = surveys * 0.08
    queue = surveys * PRICES["SQS request"]
    function = surveys * 0.5 * 0.02 * 13.33
    stored = surveys * 0.09 * PRICES["write unit"]
    storage = 10 * (0.25 + 0.25 + 0.20)  # A million tenants have 10 GB.
    cost = (queue + listed * PRICES["read"] + function + stored + storage) / 1_000
    assert totals()["1,000 tenants, per month, beyond that"] == f"{cost:.2f}"


def test_a_tenant_with_event_settings_costs_its_reads_of_every_hour_and_a_write_per_day() -> None:
    calls = table("Requests of events")
    # The list of tenants is one request for many of them, and so is the list of open purges.
    searching = int(calls["search for deleted tenants, one tenant"]["reads"]) - 2
    billing = int(calls["counts for bills, one tenant without events"]["reads"]) - 1
    hourly = (searching + billing) * PRICES["read"] + 0.25 * 0.02 * 13.33
    cost = 1_000 * (720 * hourly + 30 * PRICES["write unit"]) / 1e6
    assert totals()["1,000 tenants with event settings, per month, beyond that"] == f"{cost:.2f}"


def test_a_connection_that_waits_costs_a_look_every_fifteen_minutes_and_its_place_in_the_list() -> None:
    calls = table("Requests of events")
    idle, look, then = (
        int(calls[name]["reads"])
        for name in (
            "sweep with nothing to do",
            "sweep that looks at one paused connection",
            "the next sweeps, for 15 minutes",
        )
    )
    assert then == idle
    # The last of the reads is that of its row, and consistent. The others are those of indexes.
    looks = 43_200 // (LOOKED_AT_EVERY // timedelta(minutes=1)) * ((look - idle - 1) / 2 + 1)
    cost = 1_000 * (looks + 43_200 / 8) * PRICES["read"] / 1e6
    assert totals()["1,000 connections whose deliveries wait, per month, beyond that"] == f"{cost:.2f}"


def test_a_call_of_get_queue_is_a_request_a_call_and_a_read() -> None:
    call = 0.20 + 0.25 * 0.01 * 13.33
    cost = PRICES["request to the API"] + call + PRICES["read"] + ACCESS_KB * PRICES["KB of logs"]
    assert totals()["1 million calls of getQueue"] == f"{cost:.2f}"


def test_a_new_tenant_that_takes_a_stack_costs_its_reads_and_the_rows_of_its_transaction() -> None:
    row = table("getQueue")["a new tenant that takes a stack"]
    used = {"function calls": 1.0, "reads": float(row["reads"]), "write units": 2 * float(row["rows"])}
    cost, create = per_million(used, requests=1), per_million(counts("create"), requests=1)
    assert f"= {cost:.1f}, where a million creates are {create:.1f}" in PAGE.read_text(encoding="utf-8")


def test_a_full_warm_pool_costs_a_look_every_minute() -> None:
    look = table("Stacks that are kept ready")["look at a full pool"]
    # One of the reads is of an index, and eventually consistent.
    counted = {"function calls": float(look["function calls"]), "reads": float(look["reads"]) - 0.5}
    looks = timedelta(days=30) / POOL_EVERY
    cost = looks * per_million(counted, requests=0) / 1e6
    assert totals()["a warm pool that is full, per month, beyond that"] == f"{cost:.2f}"
    failed = (timedelta(days=1) / AFTER_FAILURE) * (
        per_million(counts("create"), requests=0) + per_million(counts("delete"), requests=0)
    )
    assert f"144 creates and deletes per day, {failed / 1e6:.2f}." in PAGE.read_text(encoding="utf-8")


def test_the_page_has_the_units_of_every_path_of_an_event() -> None:
    """The benchmark counts these, and fails if the table reports others."""
    assert {name: (int(row["requests"]), int(row["write units"])) for name, row in table("Events").items()} == {
        path.name: (path.requests, path.write_units) for path in FLOOR
    }


def a_request_of_a_producer(seconds: float) -> float:
    call = 0.20 + 0.25 * seconds * 13.33
    return PRICES["request to the API"] + call + (CALL_KB + ACCESS_KB) * PRICES["KB of logs"]


@pytest.mark.parametrize(
    ("total", "path", "seconds", "events"),
    [
        ("1 million events, sent one by one", "accept, type index and inbox", 0.01, 1),
        ("1 million events, sent in batches of 25", "accept, type index and inbox", 0.1, 25),
        ("1 million acknowledgements, 100 per request", "acknowledge", 0.4, 100),
    ],
)
def test_an_event_costs_its_part_of_a_request_and_its_write_units(
    total: str, path: str, seconds: float, events: int
) -> None:
    units = int(table("Events")[path]["write units"])
    cost = a_request_of_a_producer(seconds) / events + units * PRICES["write unit"]
    assert totals()[total] == f"{cost:.2f}"


def test_an_own_event_is_a_function_call_and_an_event_on_the_bus() -> None:
    cost = PRICES["function call"] + CALL_KB * PRICES["KB of logs"] + PRICES["event on a bus"]
    assert totals()["1 million of Berth's own events, one per function call"] == f"{cost:.2f}"


def test_a_request_for_credentials_for_events_is_a_request_and_two_reads() -> None:
    cost = a_request_of_a_producer(0.1) + 2 * PRICES["read"]
    assert totals()["1 million requests for credentials for events"] == f"{cost:.2f}"


def test_the_page_has_the_units_of_every_path_of_a_delivery() -> None:
    """The benchmark counts these, and fails if the table reports others."""
    columns = ("requests", "write units", "read units")
    assert {name: tuple(int(row[column]) for column in columns) for name, row in table("Deliveries").items()} == {
        path.name: (path.requests, path.write_units, path.read_units) for path in PATHS
    }


@pytest.mark.parametrize(
    ("total", "together"),
    [
        ("1 million deliveries at the first try, one by one", 1),
        ("1 million deliveries at the first try, ten per function call", 10),
    ],
)
def test_a_delivery_costs_its_part_of_two_function_calls_and_three_requests_to_sqs(total: str, together: int) -> None:
    path = table("Deliveries")["one connection, first try"]
    calls = 2 * 0.20 + 0.25 * (0.05 + 0.25) * 13.33
    shared = calls + 2 * CALL_KB * PRICES["KB of logs"] + 3 * PRICES["SQS request"]
    # Its connections are read when it is dispatched.
    reads = int(path["read units"]) + 1
    own = reads * PRICES["read"] + int(path["write units"]) * PRICES["write unit"] + 0.5 * PRICES["KB of logs"]
    assert totals()[total] == f"{shared / together + own:.2f}"


def test_every_size_of_a_function_costs_its_processor_time_and_its_waiting() -> None:
    """More memory computes faster at the same price, and waits at a higher price."""
    for name, row in table("Memory").items():
        processor, waiting = float(row["processor ms"]), float(row["waiting ms"])
        costs = {size: f"{dollars_per_million(size, processor, waiting):.2f}" for size in SIZES}
        assert costs == {size: row[f"{size} MB"] for size in SIZES}, name


def test_the_page_has_the_times_that_the_bench_measured() -> None:
    results = measured()
    assert {name: (float(row["processor ms"]), float(row["waiting ms"])) for name, row in table("Memory").items()} == {
        name: (
            results[f"memory: {name}: processor time per call, p50"],
            results[f"memory: {name}: assumed to wait, p50"],
        )
        for name in table("Memory")
    }


def test_the_page_says_why_the_operators_function_has_more_memory_than_is_cheapest() -> None:
    page, results = PAGE.read_text(encoding="utf-8"), measured()
    requests = [
        (float(table("Memory")[name]["processor ms"]), float(table("Memory")[name]["waiting ms"])) for name in OPERATORS
    ]
    saved = sorted(
        dollars_per_million(WHOLE_PROCESSOR, *request) - dollars_per_million(256, *request) for request in requests
    )
    assert f"would cost {saved[0]:.2f} to {saved[-1]:.2f} less" in page
    longest = max(billed_milliseconds(WHOLE_PROCESSOR, *request) for request in requests)
    assert f"assumed to take 100 ms ([{longest} ms](#memory) for the releases)" in page
    plan = next(value for name, value in results.items() if name.startswith("planning a rollout of 100,000 tenants"))
    slower = plan * WHOLE_PROCESSOR / 256
    assert f"computes for {plan} s with a whole processor" in page
    assert f"would for {slower:.0f} s with 256 MB" in page
    assert slower > PLANNING_SECONDS / 2


OF_SIMULATED_ROLLOUTS = {
    "2,000 tenants": "rollout of 2,000 tenants, quiet",
    "100,000 tenants in 50 accounts, the slowest of them": "rollout of 100,000 tenants in 50 accounts, quiet",
    "2,000 tenants, with faults": "rollout of 2,000 tenants, with faults",
    "100,000 tenants in 50 accounts, with faults, the slowest of them": "rollout of 100,000 tenants in 50 accounts, "
    "with faults",
}
OF_TIMES = {
    "in all": "time / one mutating call per tenant",
    "without waiting for the stages' last stacks": "the same without waiting for stages' last stacks",
    "in all, divided by the same stacks at an even pace": "time / the same stacks, started at an even pace",
}


def test_the_page_has_the_times_of_the_simulated_rollouts() -> None:
    results, documented = measured(), table("A rollout")
    assert documented.keys() == OF_SIMULATED_ROLLOUTS.keys()
    for row, rollout in OF_SIMULATED_ROLLOUTS.items():
        for column, name in OF_TIMES.items():
            value = results[f"{rollout}: {name}"]
            assert float(documented[row][column]) == pytest.approx(value, abs=0.0051), f"{row}: {column} is {value}"
    floor = results["rollout of 2,000 tenants, quiet: what one mutating call per tenant takes"]
    assert f"takes {floor} minutes" in PAGE.read_text(encoding="utf-8")


def test_the_page_has_the_times_of_a_loop_of_deployments() -> None:
    results = measured()
    one = results["cdk deploy of one tenant's stack"]
    served = results["20 new tenants: until getQueue answers with every queue"]
    ratio = next(value for name, value in results.items() if name.startswith("20 tenants: loop of cdk deploy ("))
    ready = results["20 tenants: loop of cdk deploy / getQueue with 20 stacks kept ready"]
    taken = results["20 new tenants with 20 stacks kept ready: until all have their queues"]
    page = PAGE.read_text(encoding="utf-8")
    assert f"a `cdk deploy` took {one} s and 20 of them would take {20 * one:.0f} s" in page
    assert f"Berth took {served} s, once its functions had run before: {ratio} times less" in page
    assert f"had their queues after {taken} s: {ready} times less" in page
