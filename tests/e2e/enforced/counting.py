"""Count the requests of an operation, from the log of decisions and from the history of its execution.

Only the straight path is counted: each state and its function once, or as often as ``ROUNDS`` says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.enforced.decisions import Decision

ROUNDS = dict.fromkeys(
    ("StartStack", "HasSettled", "start_stack", "Advance", "WhatNext", "advance_rollout"),
    2,
) | {"unfinished_work": 3}
"""How often a state or function may run, if more than once: before a delete, a queue must be seen empty twice, and a
rollout decides before and after its one stage. Unfinished work is asked for when a delete is ordered, and at every look
at the queue."""
DETOURS = frozenset({"AwaitTurn", "AwaitQueue", "PauseBeforeStart"})
"""States that wait, and are not part of every execution."""
READS = frozenset({"dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan"})
WRITES = frozenset({"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"})
COLUMNS = {"sqs": "SQS", "s3": "S3", "cloudformation": "CloudFormation"}
"""The columns of the page, by service. Requests to other services cost nothing and are not counted."""


@dataclass
class _Rounds:
    """The requests of one function, grouped by its calls."""

    calls: int = 0
    requests: list[list[Decision]] = field(default_factory=lambda: [[]])

    def begin(self) -> None:
        self.calls += 1
        if self.calls > 1:
            self.requests.append([])


@dataclass(frozen=True)
class Counting:
    """Counts the requests from a point in time on."""

    enforced: Enforced
    since: int

    @classmethod
    def begin(cls, enforced: Enforced) -> Counting:
        return cls(enforced, len(enforced.decisions()))

    def of(self, *functions: str) -> Counter[str]:
        """The counts by the columns of the page; without names, for all functions and CloudFormation's role."""
        counted: Counter[str] = Counter()
        for name in functions or self._rounds:
            rounds, times = self._rounds[name], ROUNDS.get(name, 1)
            counted["function calls"] += min(rounds.calls, times)
            for request in [each for requests in rounds.requests[-times:] for each in requests]:
                counted.update(_columns(request))
        return counted

    @cached_property
    def _rounds(self) -> dict[str, _Rounds]:
        found: defaultdict[str, _Rounds] = defaultdict(_Rounds)
        for each in self.enforced.decisions()[self.since :]:
            if not each.principal.startswith("arn:aws:sts:"):
                continue
            role = each.principal.split("/")[1]
            if each.action == "execute-api:Invoke":
                found["operators"].begin()
            elif each.action == "lambda:InvokeFunction":
                found[self._names[each.resource.rsplit(":", 1)[-1]]].begin()
            else:
                found[self._names.get(role, role)].requests[-1].append(each)
        return found

    @cached_property
    def _names(self) -> dict[str, str]:
        """The names of handlers, by the names of their functions and roles."""
        pages = self.enforced.root.client("lambda").get_paginator("list_functions").paginate()
        functions = [each for page in pages for each in page["Functions"]]
        handlers = {each["FunctionName"]: each["Handler"].split(".")[-2] for each in functions}
        return handlers | {each["Role"].rsplit("/", 1)[-1]: handlers[each["FunctionName"]] for each in functions}


def transitions(enforced: Enforced, execution: str) -> int:
    """The number of states that the execution entered on the straight path."""
    histories = enforced.root.client("stepfunctions").get_paginator("get_execution_history")
    events = [event for page in histories.paginate(executionArn=execution) for event in page["events"]]
    entered = Counter(
        event["stateEnteredEventDetails"]["name"] for event in events if event["type"].endswith("StateEntered")
    )
    return sum(min(times, ROUNDS.get(name, 1)) for name, times in entered.items() if name not in DETOURS)


def _columns(request: Decision) -> Iterator[str]:
    if request.action in READS:
        # Tenants are counted in the index once per minute and function, not per operation.
        if not (request.resource.endswith("/index/Listing") and "QueueApiOperators" in request.principal):
            yield "reads"
    elif request.action in WRITES:
        yield from ["write units"] * (2 if request.in_transaction else 1)
    elif (service := request.action.split(":")[0]) in COLUMNS:
        yield COLUMNS[service]
