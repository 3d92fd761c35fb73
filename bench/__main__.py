"""``python -m bench``: measure, print a table, write ``bench/results.json``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.get_queue import cold_import, ready_path
from bench.operations import operations
from bench.rollout_emulator import rollout_emulator
from bench.rollout_simulation import rollout_simulation

RESULTS = Path(__file__).parent / "results.json"


def main() -> None:
    console = Console()
    results = []
    for measure in (cold_import, ready_path, operations, rollout_simulation, rollout_emulator):
        with console.status(f"Measuring: {measure.__name__.replace('_', ' ')} ..."):
            results += measure()
    table = Table("what", "value", "unit", "aim")
    for result in results:
        table.add_row(result.name, f"{result.value:,}", result.unit, result.aim)
    console.print(table)
    RESULTS.write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
