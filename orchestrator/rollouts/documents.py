"""Specs as JSON documents: the format that the API accepts and the table stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import Share, Spec, StageSpec

REST = "rest"

DEFAULT_SIZES = ("1", "10%", REST)
"""The default stages: a canary, a tenth of the tenants, all others."""

_DEFAULT_BAKE_SECONDS = 300
_DEFAULT_TOLERATED = "5%"


def share_of(text: str) -> Share:
    return Share(int(text.removesuffix("%")), percent=text.endswith("%"))


def spec_from(document: Mapping[str, Any], *, max_concurrency: int) -> Spec:
    """The spec of a document. ``max_concurrency`` is the default for stages that do not set it."""
    tenants = document.get("tenants")
    stages = document.get("stages") or [{"size": size} for size in DEFAULT_SIZES]
    return Spec(
        version=document.get("version"),
        stages=tuple(
            _stage_from(stage, number, len(stages), max_concurrency, undo="undo" in document)
            for number, stage in enumerate(stages, 1)
        ),
        tenants=None if tenants is None else tuple(dict.fromkeys(TenantId.parse(each) for each in tenants)),
        labels=document.get("labels", {}),
        tier=document.get("tier"),
        share=_share(document, "share"),
        allow_downgrade=document.get("allowDowngrade", False),
        allow_replacement=document.get("allowReplacement", False),
        dry_run=document.get("dryRun", False),
        sample=_share(document, "sample"),
        undo=document.get("undo"),
        retry=document.get("retry"),
    )


def spec_document(spec: Spec) -> dict[str, object]:
    values: dict[str, object] = {
        "version": spec.version,
        "tenants": None if spec.tenants is None else [tenant.value for tenant in spec.tenants],
        "labels": dict(spec.labels),
        "tier": spec.tier,
        "share": str(spec.share) if spec.share else None,
        "allowDowngrade": spec.allow_downgrade,
        "allowReplacement": spec.allow_replacement,
        "dryRun": spec.dry_run,
        "sample": str(spec.sample) if spec.sample else None,
        "undo": spec.undo,
        "retry": spec.retry,
    }
    given = {name: value for name, value in values.items() if value not in (None, False, {})}
    return given | {"stages": [stage_document(stage) for stage in spec.stages]}


def stage_document(stage: StageSpec) -> dict[str, object]:
    return {
        "size": REST if stage.size is None else str(stage.size),
        "maxConcurrency": stage.max_concurrency,
        "tolerated": str(stage.tolerated),
        "bakeSeconds": stage.bake_seconds,
        "alarm": stage.alarm,
        "approval": stage.approval,
    }


def _stage_from(document: Mapping[str, Any], number: int, of: int, max_concurrency: int, *, undo: bool) -> StageSpec:
    """The spec of one stage. By default the first stage tolerates no failure, and the last one has no bake.

    The stages of an undo do not bake by default: the tenants go back to a release that they had before.
    """
    size = document["size"]
    bake_seconds = _DEFAULT_BAKE_SECONDS if number < of and not undo else 0
    return StageSpec(
        size=None if size == REST else share_of(size),
        max_concurrency=int(document.get("maxConcurrency", max_concurrency)),  # JSON schemas accept 5.0 as an integer.
        tolerated=share_of(document.get("tolerated", "0" if number == 1 else _DEFAULT_TOLERATED)),
        bake_seconds=int(document.get("bakeSeconds", bake_seconds)),
        alarm=document.get("alarm"),
        approval=document.get("approval", False),
    )


def _share(document: Mapping[str, Any], name: str) -> Share | None:
    return share_of(document[name]) if name in document else None
