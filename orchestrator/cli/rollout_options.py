"""The options of `berth rollout start` and `plan` that repeat the spec of an earlier rollout."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from orchestrator.cli.api import Document
from orchestrator.cli.rollout_spec import StageOptions
from orchestrator.rollouts.documents import DEFAULT_SIZES, spec_from, stage_document

MAX_TENANTS = 10
"""The maximum number of tenants that a suggested command names. More tenants have to come from a file."""


def options_of(spec: Document) -> str:
    """The options as text. It begins with a blank, unless there are no options."""
    tenants = spec.get("tenants", [])
    given = [
        *_option("--to", spec.get("version")),
        *_option("--tier", spec.get("tier")),
        *(("--tenants-from", "FILE") if len(tenants) > MAX_TENANTS else _options("--tenant", tenants)),
        *_options("--label", [f"{name}={value}" for name, value in spec.get("labels", {}).items()]),
        *_option("--share", spec.get("share")),
        *_option("--undo", spec.get("undo")),
        *_stage_options(spec["stages"], {"undo": spec["undo"]} if "undo" in spec else {}),
        *(["--allow-downgrade"] if spec.get("allowDowngrade") else []),
        *(["--allow-replacement"] if spec.get("allowReplacement") else []),
    ]
    return "".join(f" {shlex.quote(each)}" for each in given)


def _stage_options(stages: Sequence[Document], undo: Document) -> list[str]:
    """The options that result in these stages. If there are none, the stages came from a file.

    ``undo`` is the rollout that is undone, if any, because the defaults of an undo are others.
    """
    first, last = stages[0], stages[-1]
    sizes = ",".join(stage["size"] for stage in stages)
    has_several = len(stages) > 1
    options = StageOptions(
        stages=None if sizes == ",".join(DEFAULT_SIZES) else sizes,
        concurrency=first["maxConcurrency"],
        tolerate=last["tolerated"],
        bake=first["bakeSeconds"] if has_several else None,
        alarm=first["alarm"],
        approval=has_several and all(stage["approval"] for stage in stages[1:]),
        approval_last=has_several and last["approval"],
        file=None,
    )
    repeated = spec_from({"stages": options.documents()}, max_concurrency=first["maxConcurrency"])
    if [stage_document(stage) for stage in repeated.stages] != list(stages):
        return ["--stages-file", "FILE"]
    by_default = spec_from({"stages": [{"size": each["size"]} for each in stages], **undo}, max_concurrency=0).stages
    return [
        *_option("--stages", options.stages),
        # Always given, because the default is a setting of the control plane, which is not known here.
        *_option("--concurrency", options.concurrency),
        *_option("--tolerate", options.tolerate if options.tolerate != str(by_default[-1].tolerated) else None),
        *_option("--bake", options.bake if options.bake != by_default[0].bake_seconds else None),
        *_option("--alarm", options.alarm),
        *(["--approval"] if options.approval else ["--approval-last"] if options.approval_last else []),
    ]


def _option(name: str, value: object | None) -> list[str]:
    return [] if value is None else [name, str(value)]


def _options(name: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (name, value)]
