"""What is asked of AWS for an operation, from the log of decisions and from the execution's history.

The emulator sends no events about stacks, so an operation looks at its stack more often than on AWS. Only the straight
path is counted: each state and its function once, or as often as ``ROUNDS`` says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.enforced.decisions import Decision

ROUNDS = dict.fromkeys(
    ("CheckMessages", "IsEmpty", "check_messages", "Advance", "WhatNext", "advance_rollout"),
    2,
)
"""How often a state or function has its turn if that is more than once: a queue has to be seen empty twice, and a
rollout decides before and after its one stage."""
DETOURS = frozenset({"AwaitTurn", "AwaitQueue", "PauseBeforeStart"})
"""States that wait for something that is not always to be waited for."""
READS = frozenset({"dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan"})
WRITES = frozenset({"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"})
COLUMNS = {"sqs": "SQS", "s3": "S3", "cloudformation": "CloudFormation"}
"""The page's columns, by services. Requests to other services are not counted: they cost nothing."""


@dataclass
class _Rounds:
    """The requests of one function, by its calls."""

    calls: int = 0
    requests: list[list[Decision]] = field(default_factory=lambda: [[]])

    def begin(self) -> None:
        self.calls += 1
        if self.calls > 1:
            self.requests.append([])


@dataclass(frozen=True)
class Counting:
    """Everything that is asked for from a moment on."""

    enforced: Enforced
    since: int

    @classmethod
    def begin(cls, enforced: Enforced) -> Counting:
        return cls(enforced, len(enforced.decisions()))

    def of(self, *functions: str) -> Counter[str]:
        """Counts by the page's columns; without names, of all functions and of CloudFormation's role."""
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
        """The handlers' names, by the names of functions and of their roles."""
        pages = self.enforced.root.client("lambda").get_paginator("list_functions").paginate()
        functions = [each for page in pages for each in page["Functions"]]
        handlers = {each["FunctionName"]: each["Handler"].split(".")[-2] for each in functions}
        return handlers | {each["Role"].rsplit("/", 1)[-1]: handlers[each["FunctionName"]] for each in functions}


def transitions(enforced: Enforced, execution: str) -> int:
    """The states that the execution has entered on the straight path."""
    histories = enforced.root.client("stepfunctions").get_paginator("get_execution_history")
    events = [event for page in histories.paginate(executionArn=execution) for event in page["events"]]
    entered = Counter(
        event["stateEnteredEventDetails"]["name"] for event in events if event["type"].endswith("StateEntered")
    )
    return sum(min(times, ROUNDS.get(name, 1)) for name, times in entered.items() if name not in DETOURS)


def _columns(request: Decision) -> Iterator[str]:
    if request.action in READS:
        # How many tenants there are is asked of the index once per minute and function, not per operation.
        if not (request.resource.endswith("/index/Listing") and "QueueApiOperators" in request.principal):
            yield "reads"
    elif request.action in WRITES:
        yield from ["write units"] * (2 if request.in_transaction else 1)
    elif (service := request.action.split(":")[0]) in COLUMNS:
        yield COLUMNS[service]
