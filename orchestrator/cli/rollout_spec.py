"""The options of `berth rollout start` and `plan`, and the API's request body that they result in."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from orchestrator.api.reading import decode
from orchestrator.api.rollout_models import MAX_BAKE_SECONDS, MAX_CONCURRENCY, MAX_TENANTS
from orchestrator.api.rollout_requests import StartRollout
from orchestrator.cli import completing
from orchestrator.cli.selection import labels_of
from orchestrator.common.errors import InvalidRequest, InvalidTenantId
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import ID_PATTERN
from orchestrator.common.versions import VERSION_PATTERN
from orchestrator.rollouts.documents import DEFAULT_SIZES, REST
from orchestrator.rollouts.records import MAX_STAGES

HALTED = "halted"
"""The value of ``--undo`` without an id."""

_WHICH, _HOW = "Which tenants", "How"

To = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="The release to move to. Default: the current one.",
        rich_help_panel=_WHICH,
        autocompletion=completing.available_versions,
    ),
]
Tier = Annotated[
    str | None,
    typer.Option(
        metavar="TIER",
        help="The tier whose tenants are moved. Default: that of the release, else standard.",
        rich_help_panel=_WHICH,
        autocompletion=completing.tiers,
    ),
]
Tenants = Annotated[
    list[str] | None,
    typer.Option("--tenant", metavar="ID", help="Only this tenant; may be repeated.", rich_help_panel=_WHICH),
]
TenantsFrom = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Only the tenants in this file, one id per line; - is stdin.", rich_help_panel=_WHICH
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE",
        help="Only tenants with this label. If repeated, only tenants with all labels.",
        rich_help_panel=_WHICH,
    ),
]
Share = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="Only this share of the tenants to move, like 25% or 100. A later rollout can move the rest.",
        rich_help_panel=_WHICH,
    ),
]
Undo = Annotated[
    str | None,
    typer.Option(
        metavar="[ROLLOUT]",
        help="Only the tenants that this rollout has moved: back to their earlier release, or to --to. Without an id: "
        "the rollout that has halted. Stages do not bake unless --bake is given.",
        rich_help_panel=_WHICH,
        autocompletion=completing.rollout_ids,
    ),
]
Stages = Annotated[
    str | None,
    typer.Option(
        metavar="SIZES",
        help=f"The stages, as shares of all tenants. Default: {','.join(DEFAULT_SIZES)}.",
        rich_help_panel=_HOW,
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=1,
        max=MAX_CONCURRENCY,
        help="The maximum number of tenants at once. Default: the control plane's own maximum.",
        rich_help_panel=_HOW,
    ),
]
Tolerate = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE",
        help="How many tenants of a stage may fail before the rollout halts, like 2 or 5%. Default: 5%, or "
        "none if there is only one stage. In the first of several stages none may fail.",
        rich_help_panel=_HOW,
    ),
]
Bake = Annotated[
    int | None,
    typer.Option(
        metavar="SECONDS",
        min=0,
        max=MAX_BAKE_SECONDS,
        help="How long each stage bakes before the next one begins. Default: 300.",
        rich_help_panel=_HOW,
    ),
]
Alarm = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Halt if this CloudWatch alarm goes off after a stage.", rich_help_panel=_HOW),
]
Approval = Annotated[
    bool,
    typer.Option(
        "--approval", help="Every stage after the first waits for berth rollout approve.", rich_help_panel=_HOW
    ),
]
ApprovalLast = Annotated[
    bool,
    typer.Option("--approval-last", help="Only the last stage waits for berth rollout approve.", rich_help_panel=_HOW),
]
StagesFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="A file with the stages as a JSON list, see below; - is stdin.",
        rich_help_panel=_HOW,
    ),
]
AllowDowngrade = Annotated[
    bool,
    typer.Option(
        "--allow-downgrade", help="Include tenants at a newer release, and move them back.", rich_help_panel=_WHICH
    ),
]
AllowReplacement = Annotated[
    bool,
    typer.Option(
        "--allow-replacement",
        help="Update tenants even if that replaces or removes a queue with its messages.",
        rich_help_panel=_HOW,
    ),
]

_SHARE = re.compile("[1-9][0-9]{0,5}|([1-9][0-9]?|100)%", re.ASCII)
_BOUND = re.compile("[0-9]{1,6}|([0-9]{1,2}|100)%", re.ASCII)
_OPTIONS = {"alarm": "--alarm", "labels": "--label", "reason": "--reason", "tier": "--tier"}
"""The options of those fields whose rules the API has."""
_FIELD = re.compile(r"(?:stages\.(?P<stage>\d+)(?:\.|(?=:)))?(?P<field>\w*)[^:\s]*: (?P<message>.*)", re.DOTALL)


class UndoWithoutId(TyperCommand):
    """A command whose option ``--undo`` may be given without a value, which typer does not offer."""

    # Any: the type of a context is private to typer.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given: list[str] = []
        for arg, following in zip(args, [*args[1:], "--"], strict=False):
            given += [arg, HALTED] if arg == "--undo" and following.startswith("-") else [arg]
        return super().parse_args(ctx, given)


@dataclass(frozen=True, slots=True)
class StageOptions:
    stages: str | None
    concurrency: int | None
    tolerate: str | None
    bake: int | None
    alarm: str | None
    approval: bool
    """Every stage after the first waits for approval."""
    approval_last: bool
    file: str | None

    def documents(self) -> list[Any] | None:
        """The stages for the API; ``None`` if no option is given, so that the API's defaults apply."""
        given = {
            "--stages": self.stages is not None,
            "--concurrency": self.concurrency is not None,
            "--tolerate": self.tolerate is not None,
            "--bake": self.bake is not None,
            "--alarm": self.alarm is not None,
            "--approval": self.approval,
            "--approval-last": self.approval_last,
        }
        if self.file is not None:
            if others := [name for name, is_given in given.items() if is_given]:
                raise _bad("--stages-file", f"it cannot be combined with {', '.join(others)}.")
            return _stages_in(self.file)
        if not any(given.values()):
            return None
        sizes = _sizes(self.stages) if self.stages is not None else list(DEFAULT_SIZES)
        tolerated = None if self.tolerate is None else tolerated_share(self.tolerate)
        if len(sizes) == 1 and (self.approval or self.approval_last or self.bake is not None):
            raise _bad("--stages", "there is only one stage, but --bake and --approval apply between stages.")
        return [self._stage(number, len(sizes), size, tolerated) for number, size in enumerate(sizes, 1)]

    def _stage(self, number: int, of: int, size: str, tolerated: str | None) -> dict[str, object]:
        waits = number > 1 and (self.approval or (self.approval_last and number == of))
        stage: dict[str, object | None] = {
            "size": size,
            "maxConcurrency": self.concurrency,
            # The first of several stages is the canary, which must not fail.
            "tolerated": tolerated if number > 1 or of == 1 else None,
            "bakeSeconds": self.bake if number < of else None,
            "alarm": self.alarm,
            "approval": True if waits else None,
        }
        return {name: value for name, value in stage.items() if value is not None}


def body_of(
    *,
    to: str | None,
    tier: str | None,
    tenants: Sequence[str],
    tenants_from: str | None,
    labels: Sequence[str],
    share: str | None,
    undo: str | None,
    stages: StageOptions,
    allow_downgrade: bool,
    allow_replacement: bool,
    reason: str | None = None,
    sample: str | None = None,
    dry_run: bool = False,
) -> StartRollout:
    """The API's request. Invalid options are reported here, before the API is called."""
    if undo and (tenants or tenants_from):
        raise _bad("--undo", "it selects the tenants of that rollout, so --tenant and --tenants-from cannot be used.")
    if tenants_from == "-" and stages.file == "-":
        raise _bad("--stages-file", "stdin is already used for the list of tenants.")
    if to is not None and not re.fullmatch(VERSION_PATTERN, to):
        raise _bad("--to", f"{to!a} is not a version like 1.2.3.")
    values: dict[str, object | None] = {
        "version": to,
        "tier": tier,
        "tenants": _tenants(tenants, tenants_from),
        "labels": dict(labels_of(labels)) or None,
        "share": None if share is None else _share("--share", share),
        "stages": stages.documents(),
        "allowDowngrade": allow_downgrade or None,
        "allowReplacement": allow_replacement or None,
        "dryRun": dry_run or None,
        "sample": None if sample is None else _share("--sample", sample),
        "undo": None if undo in (None, HALTED) else rollout_id(undo, "--undo"),
        "reason": reason,
    }
    body = {name: value for name, value in values.items() if value is not None}
    return _checked(body, has_stages_file=stages.file is not None)


def rollout_id(given: str, hint: str = "ROLLOUT") -> str:
    if not re.fullmatch(ID_PATTERN, given):
        raise _bad(hint, f"{given!a} is not the id of a rollout, like 20261231-235959-0a1b. See: berth rollout list")
    return given


def _checked(body: dict[str, object], *, has_stages_file: bool) -> StartRollout:
    """Check the body by the API's rules, except for the maximum concurrency, which only the control plane knows."""
    try:
        asked = decode(StartRollout, body)
        asked.spec(max_concurrency=MAX_CONCURRENCY)
    except InvalidRequest as error:
        raise _in_words_of_options(str(error), has_stages_file=has_stages_file) from error
    return asked


def _in_words_of_options(message: str, *, has_stages_file: bool) -> typer.BadParameter:
    """The API's message about a field, as one about the option that gave it, or about the stage of the file."""
    found = _FIELD.fullmatch(message)
    if found is None:
        return typer.BadParameter(message)
    if has_stages_file and found["stage"] is not None:
        field = f", {found['field']}" if found["field"] else ""
        return _bad("--stages-file", f"stage {int(found['stage']) + 1}{field}: {found['message']}.")
    if found["field"] in _OPTIONS:
        return _bad(_OPTIONS[found["field"]], f"{found['message']}.")
    return typer.BadParameter(message)


def _tenants(named: Sequence[str], file: str | None) -> list[str] | None:
    tenants = [_tenant(each, "--tenant") for each in named]
    if file is not None:
        lines = enumerate(_text("--tenants-from", file).splitlines(), 1)
        listed = [_tenant(line.strip(), "--tenants-from", f"line {number}: ") for number, line in lines if line.strip()]
        if not listed:
            # Without the error, an empty file would select all tenants.
            raise _bad("--tenants-from", "the file names no tenant.")
        tenants += listed
    unique = list(dict.fromkeys(tenants))
    if len(unique) > MAX_TENANTS:
        raise _bad(
            "--tenants-from" if file is not None else "--tenant",
            f"{len(unique)} tenants are more than the {MAX_TENANTS} that can be named: label them, and use --label.",
        )
    return unique or None


def _tenant(given: str, hint: str, where: str = "") -> str:
    try:
        return TenantId.parse(given).value
    except InvalidTenantId as error:
        raise _bad(hint, f"{where}{error}") from error


def _sizes(given: str) -> list[str]:
    sizes = [each.strip() for each in given.split(",")]
    # Each size is checked first, so that the suggested value is valid.
    suggested = [*(_share("--stages", size) for size in sizes if size not in ("", REST)), REST]
    if len(suggested) > MAX_STAGES:
        raise _bad("--stages", f"there may be {MAX_STAGES} stages at most, the last of which is {REST}.")
    if sizes != suggested:
        raise _bad("--stages", f"the last stage, and only that one, must be {REST}: {','.join(suggested)}")
    return sizes


def _share(hint: str, given: str, pattern: re.Pattern[str] = _SHARE) -> str:
    if not pattern.fullmatch(given):
        raise _bad(hint, f"{given!a} is neither a number of tenants like 10 nor a share of them like 25%.")
    return given


def tolerated_share(given: str) -> str:
    return _share("--tolerate", given, _BOUND)


def _stages_in(file: str) -> list[Any]:
    try:
        stages = json.loads(_text("--stages-file", file))
    except (ValueError, RecursionError) as error:
        raise _bad("--stages-file", f"the file is not JSON: {error}") from error
    if not isinstance(stages, list):
        raise _bad("--stages-file", f'the file is not a list like [{{"size": "1"}}, {{"size": "{REST}"}}].')
    return stages


def _text(hint: str, file: str) -> str:
    read: Callable[[], bytes] = sys.stdin.buffer.read if file == "-" else Path(file).read_bytes
    try:
        return read().decode("utf-8-sig")
    except OSError as error:
        raise _bad(hint, f"{file}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise _bad(hint, f"{file}: the file is not text.") from error


def _bad(hint: str, message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=f"'{hint}'")
