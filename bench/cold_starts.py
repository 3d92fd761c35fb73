"""Compares the import of a function's module in a cold start with the minimum: boto3 and one DynamoDB client."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from bench.measure import Result, cpu_of_children, interleaved_by_clocks, wall_clock
from bench.packaged import as_deployed, complete_boto3

_BARE_IMPORT = "import boto3; boto3.client('dynamodb')"
_NEXT_CLIENT = """
import {module}, time
from orchestrator.adapters.aws import client
started, cpu = time.perf_counter(), time.process_time()
client("{service}")
print(time.perf_counter() - started, time.process_time() - cpu)
"""


def cold_import_of(name: str, module: str, settings: Mapping[str, str], rounds: int) -> list[Result]:
    """The import time of the module as it is deployed, compared with complete boto3 and one DynamoDB client.

    Both are compiled. The time of the processor is measured as well, because other load on the machine affects it less.
    """
    with as_deployed(settings) as ours, complete_boto3(settings) as bare:
        statement = f"import {module}"
        for run, imported in ((ours, statement), (bare, _BARE_IMPORT)):
            run(imported)  # Loads the files into the operating system's cache.
        (time, bare_time), (cpu, bare_cpu) = interleaved_by_clocks(
            lambda: ours(statement), lambda: bare(_BARE_IMPORT), rounds, (wall_clock, cpu_of_children)
        )
    return [
        Result(f"{name} cold import / boto3 with one DynamoDB client", round(time / bare_time, 3), "x", "<= 0.8"),
        Result(f"{name} cold import / boto3 with one DynamoDB client, CPU", round(cpu / bare_cpu, 3), "x", "<= 0.8"),
        Result(f"{name} cold import, p50", round(time, 1), "ms", ""),
        Result(f"{name} cold import, CPU, p50", round(cpu, 1), "ms", ""),
    ]


def next_client_of(
    name: str, module: str, service: str, label: str, settings: Mapping[str, str], rounds: int
) -> list[Result]:
    """The time to make another client, once the module is imported."""
    with as_deployed(settings) as run:
        statement = _NEXT_CLIENT.format(module=module, service=service)
        taken = [[float(word) * 1000 for word in run(statement).split()] for _ in range(rounds)]
    time, cpu = (statistics.median(times) for times in zip(*taken, strict=True))
    return [
        Result(f"{name}: {label} client when first needed, p50", round(time, 2), "ms", "<= 5"),
        Result(f"{name}: {label} client when first needed, CPU, p50", round(cpu, 2), "ms", "<= 5"),
    ]
