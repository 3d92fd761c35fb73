"""``python -m bench``: measures, prints a table, and writes ``bench/results.json``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.cdk_loop import cdk_loop
from bench.console_page import console_page
from bench.create_storm import create_storm
from bench.delivery_capacity import events_delivery_capacity
from bench.event_capacity import events_capacity
from bench.event_delivery import events_delivery, events_delivery_full
from bench.event_fairness import events_fairness
from bench.event_load import events_load
from bench.event_partitions import events_partitions
from bench.event_speed import events_accept, events_cold_import, events_reads
from bench.function_memory import function_memory
from bench.get_queue import cold_import, ready_path
from bench.growth import growth
from bench.load import load
from bench.measure import Result
from bench.operations import operations
from bench.rollout_emulator import rollout_emulator
from bench.rollout_simulation import rollout_ceilings, rollout_simulation
from bench.survey import survey
from bench.warm_pool import warm_pool

RESULTS = Path(__file__).parent / "results.json"
PARTS: Mapping[str, Callable[[], list[Result]]] = {
    "cold-import": cold_import,
    "ready-path": ready_path,
    "warm-pool": warm_pool,
    "operations": operations,
    "rollout-simulation": rollout_simulation,
    "rollout-ceilings": rollout_ceilings,
    "create-storm": create_storm,
    "rollout-emulator": rollout_emulator,
    "cdk-loop": cdk_loop,
    "function-memory": function_memory,
    "growth": growth,
    "console-page": console_page,
    "survey": survey,
    "load": load,
    "events-cold-import": events_cold_import,
    "events-accept": events_accept,
    "events-reads": events_reads,
    "events-capacity": events_capacity,
    "events-partitions": events_partitions,
    "events-load": events_load,
    "events-delivery-capacity": events_delivery_capacity,
    "events-fairness": events_fairness,
    "events-delivery": events_delivery,
    "events-delivery-full": events_delivery_full,
}
ON_REQUEST = frozenset({"cdk-loop", "create-storm", "events-delivery-full", "function-memory"})
"""Measured only when asked for by name."""
_MAX_DETAILS = 10


def main(
    arguments: Sequence[str] | None = None,
    *,
    parts: Mapping[str, Callable[[], list[Result]]] = PARTS,
    file: Path = RESULTS,
) -> int:
    """Returns the exit code: 1 if a count that must be 0 is not."""
    chosen = _chosen(arguments, parts)
    console = Console()
    measured: dict[str, list[Result]] = {}
    for part in chosen:
        with console.status(f"Measuring: {part.replace('-', ' ')} ..."):
            measured[part] = parts[part]()
    results = [result for part in measured.values() for result in part]
    table = Table("what", "value", "unit", "aim")
    for result in results:
        table.add_row(result.name, f"{result.value:,}", result.unit, result.aim)
    console.print(table)
    for result in results:
        _print_details(console, result)
    before = json.loads(file.read_text()) if file.exists() else []
    file.write_text(json.dumps(_kept(before, measured, parts), indent=2) + "\n")
    return 1 if any(result.is_broken for result in results) else 0


def _chosen(arguments: Sequence[str] | None, parts: Mapping[str, object]) -> list[str]:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure speed, as ratios within one run; saves the results in results.json.",
    )
    parser.add_argument(
        "part",
        nargs="*",
        metavar="PART",
        help=f"what to measure: {', '.join(parts)}; default: all, except {', '.join(sorted(ON_REQUEST))}",
    )
    requested = parser.parse_args(arguments).part
    for unknown in (part for part in requested if part not in parts):
        parser.error(f"there is no part {unknown}: choose from {', '.join(parts)}")
    return [part for part in parts if part in requested or not (requested or part in ON_REQUEST)]


def _print_details(console: Console, result: Result) -> None:
    if not result.details:
        return
    console.print(f"{result.name}:", highlight=False)
    for detail in result.details[:_MAX_DETAILS]:
        console.print(f"  {detail}", highlight=False, markup=False)
    if len(result.details) > _MAX_DETAILS:
        console.print(f"  and {len(result.details) - _MAX_DETAILS} more", highlight=False)


def _kept(
    before: list[dict[str, Any]], measured: Mapping[str, list[Result]], parts: Mapping[str, object]
) -> list[dict[str, Any]]:
    """The new results, and the previous results of the parts that were not measured now."""
    kept: list[dict[str, Any]] = []
    for part in parts:
        if part in measured:
            kept += [
                {"part": part, "name": each.name, "value": each.value, "unit": each.unit, "aim": each.aim}
                for each in measured[part]
            ]
        else:
            kept += [each for each in before if each.get("part") == part]
    return kept


if __name__ == "__main__":
    sys.exit(main())
