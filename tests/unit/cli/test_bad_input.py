"""Any arguments of `berth` end with a documented exit code, and invalid ones change nothing.

Inputs are generated from real commands and options and from invalid values. Each has its own seed, so that a failing
one can be repeated alone. A part of them is tried here; `make fuzz` tries 10,000.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random
from typing import Any

import pytest

from orchestrator.api.requesting import HttpRequest
from orchestrator.cli.errors import ExitCode
from orchestrator.client.transport import ApiAnswer
from orchestrator.console import server
from orchestrator.tenants.provisioning import Provisioning
from tests.fakes import execution_arn
from tests.fakes.templates import EXAMPLE_FILE
from tests.unit.cli.conftest import BERTH, Scene
from tests.unit.cli.fake_api import InMemoryApi, ScriptedEventsApi

INPUTS = int(os.environ.get("BERTH_FUZZ_INPUTS", "1000"))
SEED = "berth"
PARTS = 4
"""Inputs are split into parts, which run in parallel."""

FITTING = {
    "ADDRESS": ("ada@example.com",),
    "CONNECTION_ID": (f"conn_{'0' * 24}",),
    "CURSOR": ("YWNtZQ",),
    "DAYS": ("1", "90"),
    "EVENT_ID": ("0193f1c0-4a00-7000-8000-00000000a1b0",),
    "EVENT_ID...": ("0193f1c0-4a00-7000-8000-00000000a1b0",),
    "FIELD": ("website",),
    "FILE": ("-", "version.txt"),
    "FROM": ("0.1.0", "0.7.0"),
    "FORM_ID": (f"form_{'0' * 24}",),
    "HOURS": ("0", "24"),
    "ID": ("acme", "20261116-120000-0a1b"),
    "KEY_ID": (f"key_{'0' * 24}",),
    "NAME": ("Berth", "errors"),
    "NAME=VALUE": ("team=blue", "team="),
    "NUMBER": ("1", "20"),
    "ORIGIN": ("api", f"src_{'0' * 24}"),
    "PROFILE": ("prod",),
    "PROVIDER": ("github", "NONE"),
    "REGION": ("eu-west-1",),
    "REPLAY_ID": (f"rpl_{'0' * 24}",),
    "ROLLOUT": ("20261116-120000-0a1b",),
    "SECONDS": ("1", "60"),
    "SHARE": ("1", "25%"),
    "SIZES": ("rest", "1,10%,rest"),
    "SOURCE_ID": (f"src_{'0' * 24}",),
    "STATE": ("READY", "deleted"),
    "STATUS": ("failed", "undelivered"),
    "TEMPLATE": (str(EXAMPLE_FILE), str(EXAMPLE_FILE.parent), "version.txt", "no-such-file.json"),
    "TENANT": ("acme", "globex"),
    "JSON": ("{}", '{"set": {"plan": "gold"}}'),
    "METHOD": ("GET", "POST", "DELETE"),
    "PATH": ("/tenants", "/tenants/acme", "/tenants/acme/labels"),
    "FORMAT": ("wide", "name", "json"),
    "NAME=VALUE|NAME-...": ("plan=gold", "trial-"),
    "[ROLLOUT]": ("20261116-120000-0a1b", "--bake"),
    "TIME": ("2h", "2026-11-16T12:00:00Z"),
    "TO": ("0.8.0", "9.9.9"),
    "TYPE": ("order.created",),
    "TEXT": ("Ticket 4711", "why not?"),
    "URL": ("https://www.example.com", "https://www.example.com/thanks", "http://127.0.0.1:65000/hook"),
    "TIER": ("standard", "gold", "silver"),
    "VERSION": ("0.1.0", "0.2.0", "9.9.9"),
    "YYYY-MM": ("2026-11",),
    "<free|starter|pro|team>": ("free", "PRO"),
    "<read|write|admin>": ("read", "Admin"),
    "<send|receive>": ("send", "RECEIVE"),
    # Flags take no value.
    None: ("yes",),
    "PORT": ("0", "8100"),
}
"""Valid values, by the metavar in the help."""

ESCAPES = (
    *("../x", "..", "a/b", "acme/pin", "acme%2Fpin", "%2e%2e", "acme?force=true", "acme#", "TENANT_ID#x", "acme#LOCK"),
    *("a b", " acme", "acme ", "acme\n", "\nacme", "acme\r\nX-Injected: 1", "acme\tglobex", "*", "${acme}", "[bold]x"),
)
NUMBERS = ("0", "-1", "01", "1e9", "NaN", "inf", "-0", "1_000", "٣", "0x10", "1.5", "101%", "-5%", "9" * 20, "9" * 400)
STRANGE = (
    *("", " ", "-", "--", "---", "=", "-=", "--=", "\x1b[31m", "\x07", "\x7f", "\u202e", "\ufeff", "\u2028", "名前"),
    *("ä", "e\u0301", "\U0001f6a2", "\udcff", "x" * 41, "x" * 5000, "\x01\x02", "null", "{}", "[]", '{"size": "1"}'),
)
"""There is no NUL, because no shell can pass it. The lone surrogate stands for a byte that is not UTF-8."""

# --debug prints tracebacks on purpose. Help is slow, and tested elsewhere. Completion is installed into the
# start-up file of the shell of whoever runs the tests.
LEFT_OUT = {"--debug", "--help", "--install-completion", "--show-completion"}


@dataclass(frozen=True)
class Command:
    path: list[str]
    arguments: list[str | None]
    options: list[tuple[str, str | None, bool]]
    """The name, the metavar, and whether it takes a value, of each option."""


def commands(of: Any = BERTH, path: Sequence[str] = ()) -> Iterator[Command]:
    options = [
        (name, option.metavar, not option.is_flag)
        for option in of.params
        if option.param_type_name == "option"
        for name in (*option.opts, *option.secondary_opts)
        if name not in LEFT_OUT
    ]
    yield Command(list(path), [each.metavar for each in of.params if each.param_type_name == "argument"], options)
    for name, command in getattr(of, "commands", {}).items():
        yield from commands(command, (*path, name))


COMMANDS = list(commands())
ALL_OPTIONS = list(chain.from_iterable(command.options for command in COMMANDS))


def arguments_of(number: int) -> list[str]:
    random = Random(f"{SEED} {number}")
    command = random.choice(COMMANDS)
    given = [[_value(random, metavar)] for metavar in command.arguments if random.random() < 0.95]
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        name, metavar, takes_value = random.choice((random.random() < 0.9 and command.options) or ALL_OPTIONS)
        if takes_value == (random.random() < 0.97):
            value = _value(random, metavar)
            given.append([f"{name}={value}"] if random.random() < 0.3 else [name, value])
        else:
            given.append([name])
    if random.random() < 0.1:
        given.append([random.choice(("--", _value(random, "TENANT")))])
    random.shuffle(given)
    path = [*command.path[:-1], _value(random, "TENANT")] if random.random() < 0.03 else command.path
    return [*path, *chain.from_iterable(given)]


def _value(random: Random, metavar: str | None) -> str:
    kind = random.random()
    if kind < 0.65:
        return random.choice(FITTING[metavar])
    if kind < 0.95:
        return random.choice(random.choice((ESCAPES, NUMBERS, STRANGE)))
    # Any character of the first planes except NUL.
    return "".join(chr(random.randrange(1, 0x20000)) for _ in range(random.randrange(1, 20)))


class Recording(InMemoryApi):
    """Records the changes that it made."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[str] = []

    def send(self, request: HttpRequest) -> ApiAnswer:
        answer = super().send(request)
        if request.method != "GET" and answer.status < 400:
            self.changes.append(f"{request.method} {request.path}")
        return answer


_ROLLOUT_ID = "[0-9]{8}-[0-9]{6}-[0-9a-f]{4}"
PATHS = re.compile(
    "(GET|PUT|DELETE) /tenants/[A-Za-z0-9_-]{1,40}(/queue|/pin|/stack)?"
    "|POST /tenants/[A-Za-z0-9_-]{1,40}/(upgrade|retry|labels|queue/credentials/(send|receive))"
    "|GET /(tenants|releases|rollouts|diagnosis|reconciliations)"
    r"|POST /releases/[0-9]+\.[0-9]+\.[0-9]+/(promote|withdraw|reinstate|check)"
    r"|PUT /releases/[0-9]+\.[0-9]+\.[0-9]+"
    r"|GET /releases/[0-9]+\.[0-9]+\.[0-9]+/changes"
    f"|POST /rollouts(/{_ROLLOUT_ID}/[a-z]+)?"
    f"|GET /(rollouts|reconciliations)/{_ROLLOUT_ID}"
    "|POST /reconciliations"
    "|(GET|PUT) /tenants/[A-Za-z0-9_-]{1,40}/settings"
    "|GET /(purges|troubled-connections)"
    "|GET /tenants/[A-Za-z0-9_-]{1,40}/(?:usage|changes)"
    "|GET /tenants/[A-Za-z0-9_-]{1,40}/(inbox|events(/[0-9a-f-]{36}(/attempts)?)?)"
    "|POST /tenants/[A-Za-z0-9_-]{1,40}/events/[0-9a-f-]{36}/resend"
    "|(GET|POST) /tenants/[A-Za-z0-9_-]{1,40}/replays(/rpl_[0-9a-f]{24}(/[a-z]+)?)?"
    "|POST /tenants/[A-Za-z0-9_-]{1,40}/inbox/ack"
    "|POST /events"
    "|(GET|POST) /tenants/[A-Za-z0-9_-]{1,40}/(keys|sources|forms|connections)"
    "|(GET|PUT|POST|DELETE) /tenants/[A-Za-z0-9_-]{1,40}/(keys|sources|forms|connections)/"
    "(key|src|form|conn)_[0-9a-f]{24}(/[a-z]+)?"
)
"""All paths of both APIs. Their parameters have no characters that lead to another path."""


TOLD_BY_AN_ERROR = (ExitCode.BAD_USAGE, ExitCode.GONE, ExitCode.NO_CONTROL_PLANE, ExitCode.REFUSED)


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def nobody_uses_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would serve its pages until somebody interrupts it, and open a browser."""
    monkeypatch.setattr(server, "serve", lambda *_, **__: interrupt())


def faults(arguments: list[str], *, with_acme: bool) -> Iterator[str]:
    """The reasons why this result is wrong."""
    scene = Scene(api := Recording(), events := ScriptedEventsApi())
    if with_acme:
        scene.has()
        api.changes.clear()
    scene.queue_answers(Provisioning(execution_arn("create-acme")))
    # The clock advances while the command sleeps.
    scene.meanwhile = [lambda: None, lambda: None, interrupt]
    result = scene.berth(*arguments)
    if result.exit_code not in set(ExitCode) - {ExitCode.UNEXPECTED}:
        yield f"it ended with {result.exit_code}"
    if "Traceback" in result.output:
        yield "it shows a traceback"
    lines = len(re.findall("^Error: ", result.stderr, re.MULTILINE))
    # Typer shows its own errors in a box.
    errors = lines + result.stderr.count("─ Error ─")
    is_told = errors == 1 or "Usage: " in result.stdout  # Without any command, help is shown instead.
    if errors > 1 or (result.exit_code in TOLD_BY_AN_ERROR and not is_told):
        yield f"it tells {errors} errors"
    if result.exit_code == ExitCode.BAD_USAGE and (changes := api.changes + events.changes):
        yield f"it is invalid, and it has changed something: {changes}"
    for asked in api.asked + events.asked:
        if not PATHS.fullmatch(asked.partition("?")[0]):
            yield f"it asked for {asked!a}"


@pytest.mark.parametrize("part", range(PARTS))
def test_any_command_line_ends_with_a_documented_exit_code_and_invalid_input_changes_nothing(part: int) -> None:
    for number in range(part, INPUTS, PARTS):
        arguments = arguments_of(number)
        shown = f"input {number} of seed {SEED!r}: {arguments!a}"
        try:
            found = list(faults(arguments, with_acme=number % 3 == 0))
        except Exception as error:
            raise AssertionError(f"{shown} is not caught") from error
        assert not found, f"{shown}: {found}"


def test_inputs_reach_every_command_and_end_in_many_ways() -> None:
    """Without this the property could hold because no input reaches a command."""
    assert {" ".join(command.path) for command in COMMANDS} >= {
        "create",
        "delete",
        "reconcile",
        "doctor",
        "rollout start",
        "keys create",
        "forms update",
        "connections create",
        "deliveries",
        "resend",
        "replay start",
        "listen",
        "events tail",
        "inbox ack",
    }
    ends: dict[object, int] = {}
    changed = changed_events = 0
    for number in range(400):
        scene = Scene(api := Recording(), events := ScriptedEventsApi())
        scene.queue_answers(Provisioning(execution_arn("create-acme")))
        scene.meanwhile = [interrupt]
        code = scene.berth(*arguments_of(number)).exit_code
        ends[code] = ends.get(code, 0) + 1
        changed += bool(api.changes)
        changed_events += bool(events.changes)
    assert ends[ExitCode.BAD_USAGE] > 100
    assert ends[ExitCode.OK] > 20
    assert ends[ExitCode.GONE] > 5
    assert changed > 10
    assert changed_events > 5
