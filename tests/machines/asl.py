"""Static checks of a state machine in Amazon States Language. Each check returns a list of problems.

The emulator runs machines that AWS would reject, and rare paths are not run in tests. These checks read the file
instead.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import cache
from typing import Any

from jsonata import Jsonata  # type: ignore[import-untyped]
from jsonata.jexception import JException  # type: ignore[import-untyped]

Machine = dict[str, Any]
State = dict[str, Any]
Check = Callable[[Machine], list[str]]

PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
VARIABLE = re.compile(r"\$([A-Za-z]\w*)(?![\w(])")
PATH = re.compile(r"\{%\s*\$(\w+)((?:\.\w+)*)\s*%\}")
OUTCOME_READ = re.compile(r"\$states\.input\.outcome\s*=\s*'([^']*)'")
CALLS_A_FUNCTION = "arn:aws:states:::lambda:invoke"
RUNS_A_MACHINE = "arn:aws:states:::states:startExecution.sync:2"
THROTTLED = {CALLS_A_FUNCTION: "Lambda.TooManyRequestsException", RUNS_A_MACHINE: "StepFunctions.ThrottlingException"}
MANY_ATTEMPTS = 20
FEW_SECONDS = 5
"""The maximum time between the decision to start a machine and its start."""


def parse(text: str) -> Machine:
    """Parse a machine. A placeholder outside quotes is not JSON."""
    machine: Machine = json.loads(text)
    return machine


def states(machine: Machine) -> dict[str, State]:
    found: dict[str, State] = machine["States"]
    return found


def tasks(machine: Machine) -> Iterator[tuple[str, State]]:
    return ((name, state) for name, state in states(machine).items() if state["Type"] == "Task")


def functions(machine: Machine) -> Iterator[tuple[str, State]]:
    """The tasks that call a function."""
    return ((name, state) for name, state in tasks(machine) if state["Resource"].startswith(CALLS_A_FUNCTION))


def maps(machine: Machine) -> dict[str, State]:
    return {name: state for name, state in states(machine).items() if state["Type"] == "Map"}


def children(machine: Machine) -> dict[str, Machine]:
    """The machines that maps run for each item, by the map's name."""
    return {name: state["ItemProcessor"] for name, state in maps(machine).items()}


def without_children(machine: Machine) -> Machine:
    """The machine without the machines that its maps run."""
    alone = {
        name: {field: value for field, value in state.items() if field != "ItemProcessor"}
        for name, state in states(machine).items()
    }
    return {**machine, "States": alone}


def catches(state: State) -> Iterator[tuple[list[str], str]]:
    return ((catch["ErrorEquals"], catch["Next"]) for catch in state.get("Catch", []))


def leads_on(state: State) -> set[str]:
    """The next states if there is no error."""
    return {choice["Next"] for choice in state.get("Choices", [])} | {
        state[name] for name in ("Next", "Default") if name in state
    }


def successors(state: State) -> set[str]:
    """The next states after a success, a choice or an error."""
    return leads_on(state) | {target for _, target in catches(state)}


def reachable(machine: Machine, start: str) -> set[str]:
    seen: set[str] = set()
    ahead = {start}
    while ahead:
        name = ahead.pop()
        if name not in seen and name in states(machine):
            seen.add(name)
            ahead |= successors(states(machine)[name])
    return seen


def ends_green(state: State) -> bool:
    return state["Type"] == "Succeed" or state.get("End") is True


def waits_for_token(state: State) -> bool:
    return str(state.get("Resource", "")).endswith(".waitForTaskToken")


def texts(value: object) -> Iterator[str]:
    """Every text in the machine, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def is_expression(text: str) -> bool:
    return text.startswith("{%") and text.endswith("%}")


def expressions(machine: Machine) -> Iterator[str]:
    return (text[2:-2].strip() for text in texts(machine) if is_expression(text))


# Evaluation of expressions


@cache
def _compiled(expression: str) -> Jsonata:
    return Jsonata(expression[2:-2])


def used_variables(expression: str) -> set[str]:
    return set(VARIABLE.findall(expression)) - {"states"}


def evaluate(template: Any, variables: Mapping[str, object]) -> Any:
    """The template with all expressions evaluated. An unknown variable is an error."""
    if isinstance(template, dict):
        return {name: evaluate(value, variables) for name, value in template.items()}
    if isinstance(template, str) and is_expression(template):
        if (path := PATH.fullmatch(template)) and (found := _followed(path, variables)) is not None:
            return found
        expression = _compiled(template)
        for name in VARIABLE.findall(template):
            expression.assign(name, variables[name])
        return expression.evaluate(None)
    return template


def _followed(path: re.Match[str], variables: Mapping[str, object]) -> object:
    """The value of a plain path. JSONata evaluates the rest; this is faster, and the simulation evaluates millions."""
    value: object = variables[path[1]]
    for name in path[2].split(".")[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def chosen(choice: State, value: object) -> str:
    """The state that a Choice leads to with this input."""
    for rule in choice["Choices"]:
        if evaluate(rule["Condition"], {"states": {"input": value}}) is True:
            return str(rule["Next"])
    return str(choice["Default"])


# The checks


def speaks_jsonata(machine: Machine) -> list[str]:
    """The machine is JSONata, or each of its states is except maps: the emulator supports only JSONPath for maps."""
    if machine.get("QueryLanguage") == "JSONata":
        return [f"{name} changes the query language" for name, s in states(machine).items() if "QueryLanguage" in s]
    return [
        f"{name} is not JSONata, and the machine is not either"
        for name, state in states(machine).items()
        if state["Type"] != "Map" and state.get("QueryLanguage") != "JSONata"
    ]


def variables_are_its_own(machine: Machine) -> list[str]:
    """A child does not see variables of its parent, except on the emulator."""
    alone = without_children(machine)
    assigned = {
        name
        for state in states(alone).values()
        for assigning in (state, *state.get("Catch", []), *state.get("Choices", []))
        for name in assigning.get("Assign", {})
    }
    used = set().union(*map(used_variables, expressions(alone)))
    return [f"${name} is used, and nothing here assigns it" for name in used - assigned]


def maps_are_bounded(machine: Machine) -> list[str]:
    """By default a map runs 10,000 children at once, ends with the first failure, and returns all results."""
    wrong = []
    for name, state in maps(machine).items():
        if not _says_how_many(state):
            wrong.append(f"{name} does not say how many run at once")
        if state.get("ToleratedFailurePercentage") != 100:
            wrong.append(f"{name} ends when children fail")
        if "ResultWriter" not in state or state.get("ResultPath", "$") is not None:
            wrong.append(f"{name} returns the results of all children")
        if state["ItemProcessor"].get("ProcessorConfig") != {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}:
            wrong.append(f"{name} has its children in its own history, or for five minutes only")
    return wrong


def _says_how_many(a_map: State) -> bool:
    return str(a_map.get("MaxConcurrencyPath")).startswith("$.")


def leads_somewhere(machine: Machine) -> list[str]:
    """Every target exists, every state can be reached, and every state except the last has a next one."""
    wrong = []
    names = set(states(machine))
    if machine["StartAt"] not in names:
        wrong.append(f"StartAt names {machine['StartAt']}, which does not exist")
    for name, state in states(machine).items():
        wrong += [f"{name} leads to {target}, which does not exist" for target in successors(state) - names]
        ends = state["Type"] in ("Succeed", "Fail") or state.get("End") is True
        if ends == bool(leads_on(state)):
            wrong.append(f"{name} neither ends nor leads on, or does both")
    return wrong + [f"{name} is never reached" for name in names - reachable(machine, machine["StartAt"])]


def tasks_time_out(machine: Machine) -> list[str]:
    wrong = []
    for name, state in tasks(machine):
        seconds = state.get("TimeoutSeconds")
        if not (isinstance(seconds, int) and seconds > 0) and not PLACEHOLDER.fullmatch(str(seconds)):
            wrong.append(f"{name} has no TimeoutSeconds")
    return wrong


def waits_end(machine: Machine) -> list[str]:
    wrong = []
    for name, state in states(machine).items():
        seconds = state.get("Seconds")
        counted = isinstance(seconds, int) and seconds > 0
        computed = isinstance(seconds, str) and (is_expression(seconds) or PLACEHOLDER.fullmatch(seconds))
        if state["Type"] == "Wait" and not counted and not computed:
            wrong.append(f"{name} has no Seconds to wait")
    return wrong


def tasks_retry(machine: Machine) -> list[str]:
    """Tasks retry throttling for a long time with jitter, and other faults a few times, but not the timeout of a token.

    A machine that a task runs has its own retries, so a failed one is not run again. A machine that cannot be started
    is retried for a few seconds only, because meanwhile the start may no longer be wanted.
    """
    wrong = []
    for name, state in tasks(machine):
        retries: list[dict[str, Any]] = state.get("Retry", [])
        throttled = THROTTLED[state["Resource"].removesuffix(".waitForTaskToken")]
        patient = [retry for retry in retries if throttled in retry["ErrorEquals"]]
        if state["Resource"] == RUNS_A_MACHINE:
            if sum(map(seconds_of, patient)) > FEW_SECONDS:
                wrong.append(f"{name} may be started long after the decision")
            if not any(asks_again(machine, errors, target) for errors, target in catches(state)):
                wrong.append(f"{name} does not wait and ask again when it cannot be started")
        elif not patient or patient[0].get("MaxAttempts", 3) < MANY_ATTEMPTS:
            wrong.append(f"{name} does not retry throttled calls often enough")
        wrong += [f"{name} retries without jitter" for r in retries if r.get("JitterStrategy") != "FULL"]
        wrong += [f"{name} has no maximum delay between retries" for r in retries if "MaxDelaySeconds" not in r]
        if state["Resource"] == RUNS_A_MACHINE:
            if any(error.startswith("States.") for retry in retries for error in retry["ErrorEquals"]):
                wrong.append(f"{name} runs a failed machine again")
            continue
        caught_all = {"States.TaskFailed"} if waits_for_token(state) else {"States.ALL", "States.TaskFailed"}
        last = set(retries[-1]["ErrorEquals"]) if retries else set()
        if not last & caught_all:
            wrong.append(f"{name} does not retry other faults")
        if waits_for_token(state) and any({"States.ALL", "States.Timeout"} & set(r["ErrorEquals"]) for r in retries):
            wrong.append(f"{name} waits again when its token times out")
    return wrong


def seconds_of(retrier: dict[str, Any]) -> float:
    """The maximum time until the last attempt begins."""
    interval, rate = retrier.get("IntervalSeconds", 1), retrier.get("BackoffRate", 2.0)
    longest = retrier.get("MaxDelaySeconds", math.inf)
    return float(sum(min(longest, interval * rate**number) for number in range(retrier.get("MaxAttempts", 3))))


def asks_again(machine: Machine, errors: list[str], target: str) -> bool:
    """True if an error that kept a machine from starting leads to a wait, after which the start is decided anew."""
    return THROTTLED[RUNS_A_MACHINE] in errors and states(machine)[target]["Type"] == "Wait"


def faults_end_in_failure(machine: Machine) -> list[str]:
    """Every task and map catches all errors, and the execution then fails."""
    wrong = []
    for name, state in (*tasks(machine), *maps(machine).items()):
        caught = list(catches(state))
        if not caught or caught[-1][0] != ["States.ALL"]:
            wrong.append(f"{name} does not catch every fault")
        for errors, target in caught:
            goes_and_looks = errors == ["States.Timeout"] and waits_for_token(state)
            after = {target} if goes_and_looks else reachable(machine, target)
            ends = [states(machine)[each] for each in after]
            fails = goes_and_looks or any(end["Type"] == "Fail" for end in ends)
            if any(map(ends_green, ends)) or not fails:
                wrong.append(f"{name} may catch {errors} and end without failing")
    return wrong


def faults_are_recorded_by(recorders: set[str]) -> Check:
    """A child may succeed after a fault, if one of these states has recorded the fault.

    A fault of a recording state itself fails the child.
    """

    def check(machine: Machine) -> list[str]:
        wrong = []
        for name, state in tasks(machine):
            caught = list(catches(state))
            if name in recorders:
                wrong += [f"{name} catches {errors}, so that nobody notices" for errors, _ in caught]
            elif not caught or caught[-1][0] != ["States.ALL"]:
                wrong.append(f"{name} does not catch every fault")
            else:
                wrong += [
                    f"{name} does not have {errors} recorded"
                    for errors, to in caught
                    if to not in recorders and not asks_again(machine, errors, to)
                ]
        return wrong

    return check


def loops_wait(machine: Machine) -> list[str]:
    """Every loop contains a state that waits. A map waits for its children."""
    busy = {
        name: successors(state)
        for name, state in states(machine).items()
        if state["Type"] not in ("Wait", "Map") and not waits_for_token(state)
    }

    def comes_back(start: str) -> bool:
        seen: set[str] = set()
        ahead = set(busy[start])
        while ahead:
            name = ahead.pop()
            if name == start:
                return True
            if name in busy and name not in seen:
                seen.add(name)
                ahead |= busy[name]
        return False

    return [f"{name} is in a loop that does not wait" for name in busy if comes_back(name)]


def choices_default(machine: Machine) -> list[str]:
    return [
        f"{name} has no Default" for name, s in states(machine).items() if s["Type"] == "Choice" and "Default" not in s
    ]


def expressions_parse(machine: Machine) -> list[str]:
    wrong = [
        f"{text!r} is an incomplete expression"
        for text in texts(machine)
        if text.startswith("{%") != text.endswith("%}")
    ]
    for expression in expressions(machine):
        try:
            Jsonata(expression)
        except JException as error:
            wrong.append(f"{expression!r} does not parse: {error}")
    return wrong


def outlives(deadline: timedelta) -> Check:
    def check(machine: Machine) -> list[str]:
        seconds = machine.get("TimeoutSeconds", 0)
        return [] if seconds > deadline.total_seconds() else [f"the machine times out after {seconds} s"]

    return check


def succeeds_at(last: str) -> Check:
    """Only this state ends the execution successfully."""

    def check(machine: Machine) -> list[str]:
        green = {name for name, state in states(machine).items() if ends_green(state)}
        return [f"{name} ends the machine as a success" for name in green - {last}] + [
            f"{name} does not end the machine" for name in {last} - green
        ]

    return check


def placeholders(machine: Machine) -> set[str]:
    return {name for text in texts(machine) for name in PLACEHOLDER.findall(text)}


def filled_by(substitutions: set[str]) -> Check:
    def check(machine: Machine) -> list[str]:
        found = placeholders(machine)
        return [f"there is no value for ${{{name}}}" for name in found - substitutions] + [
            f"there is no ${{{name}}} to fill" for name in substitutions - found
        ]

    return check


def outcomes_are_read(outcomes: Mapping[str, set[str]]) -> Check:
    """A Choice reads only outcomes of the task before it; and it reads "failed", if that is one of them."""

    def check(machine: Machine) -> list[str]:
        wrong = []
        for name, choice in states(machine).items():
            if choice["Type"] != "Choice":
                continue
            before = [task for task, state in tasks(machine) if state.get("Next") == name]
            returned = set().union(*(outcomes[task] for task in before))
            read = {word for text in texts(choice["Choices"]) for word in OUTCOME_READ.findall(text)}
            wrong += [f"{name} reads {word!r}, which {before} never return" for word in read - returned]
            if "failed" in returned - read:
                wrong.append(f"{name} does not read 'failed'")
        return wrong

    return check


CHECKS: tuple[Check, ...] = (
    speaks_jsonata,
    variables_are_its_own,
    maps_are_bounded,
    leads_somewhere,
    tasks_time_out,
    waits_end,
    tasks_retry,
    loops_wait,
    choices_default,
    expressions_parse,
)
"""The checks for every machine. The checks of faults differ for children, so they are not here."""
