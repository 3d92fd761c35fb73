"""The requests of the operators' routes for rollouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType, to_builtins

from orchestrator.api.fields import (
    Reason,
    RolloutId,
    Tier,
    Version,
    WireRequest,
    or_default,
)
from orchestrator.api.rollout_models import (
    AlarmName,
    Approval,
    BakeSeconds,
    Concurrency,
    NewTolerated,
    OnlyLabels,
    OnlyShare,
    OnlyTenants,
    Sample,
    Size,
    StageNumber,
    Tolerated,
)
from orchestrator.api.tenant_models import MAX_PAGE_SIZE
from orchestrator.common.errors import InvalidRequest
from orchestrator.rollouts import records
from orchestrator.rollouts.documents import REST, share_of, spec_from
from orchestrator.rollouts.records import MAX_STAGES
from orchestrator.tenants.fleet import PAGE_SIZE


class StageSpec(WireRequest, frozen=True, kw_only=True):
    """One stage of the request."""

    size: Size
    max_concurrency: Concurrency | UnsetType = UNSET
    tolerated: Tolerated | UnsetType = UNSET
    bake_seconds: BakeSeconds | UnsetType = UNSET
    alarm: AlarmName | UnsetType = UNSET
    approval: Approval = False


class StartRollout(WireRequest, frozen=True, kw_only=True):
    version: (
        Annotated[Version, Meta(description="The release to move to. Default: the current release of tier.")]
        | UnsetType
    ) = UNSET
    tier: (
        Annotated[
            Tier,
            Meta(
                description="The tier whose tenants are moved. Default: the tier of version, else standard. A release "
                "of another tier is refused."
            ),
        ]
        | UnsetType
    ) = UNSET
    tenants: OnlyTenants | UnsetType = UNSET
    labels: OnlyLabels | UnsetType = UNSET
    share: OnlyShare | UnsetType = UNSET
    stages: (
        Annotated[
            list[StageSpec],
            Meta(
                min_length=1,
                max_length=MAX_STAGES,
                description="The stages, in order. Default: one tenant, then 10%, then the rest.",
            ),
        ]
        | UnsetType
    ) = UNSET
    allow_downgrade: Annotated[bool, Meta(description="Allow a move to an older release.")] = False
    allow_replacement: Annotated[
        bool, Meta(description="Allow updates that replace or remove a queue. The messages in the queue are lost.")
    ] = False
    dry_run: Annotated[bool, Meta(description="Only report what would change.")] = False
    sample: Sample | UnsetType = UNSET
    undo: (
        Annotated[
            RolloutId,
            Meta(description="The rollout to undo. Its tenants return to their previous release, or to version."),
        ]
        | UnsetType
    ) = UNSET
    reason: Reason | UnsetType = UNSET

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "dependentSchemas": {
            "sample": {
                "description": "sample requires dryRun.",
                "required": ["dryRun"],
                "properties": {"dryRun": {"const": True}},
            },
            "undo": {
                "description": "undo selects the tenants of that rollout, so it excludes tenants.",
                "properties": {"tenants": False},
            },
        }
    }

    def spec(self, *, max_concurrency: int) -> records.Spec:
        """``max_concurrency`` is the control plane's own limit of tenants that are moved at once."""
        stages: list[StageSpec] = or_default(self.stages, [])
        if [stage.size == REST for stage in stages] != [*(False for _ in stages[1:]), *(True for _ in stages[:1])]:
            raise InvalidRequest(f"stages: the last stage, and only the last, must have the size {REST}.")
        if self.undo is not UNSET and self.tenants is not UNSET:
            raise InvalidRequest(
                "undo: undo selects the tenants of that rollout, so it cannot be combined with tenants."
            )
        if self.sample is not UNSET and not self.dry_run:
            raise InvalidRequest("sample: sample requires dryRun.")
        if any(or_default(stage.max_concurrency, 0) > max_concurrency for stage in stages):
            raise too_many_at_once(max_concurrency)
        return spec_from(to_builtins(self), max_concurrency=max_concurrency)


class RolloutIdRequest(WireRequest, frozen=True, kw_only=True):
    """A request that names a rollout in its path."""

    rollout_id: RolloutId


class OrderRollout(RolloutIdRequest, frozen=True, kw_only=True):
    """An order takes no parameters besides a reason."""

    reason: Reason | UnsetType = UNSET


class ApproveStage(RolloutIdRequest, frozen=True, kw_only=True):
    """The stage to approve."""

    stage: StageNumber
    reason: Reason | UnsetType = UNSET


class PromoteStage(RolloutIdRequest, frozen=True, kw_only=True):
    """The stage whose bake or wait for approval ends."""

    stage: StageNumber
    approve: (
        Annotated[bool, Meta(description="Approve the stage if it awaits approval. By default that is refused.")]
        | UnsetType
    ) = UNSET
    reason: Reason | UnsetType = UNSET


class ChangeRollout(RolloutIdRequest, frozen=True, kw_only=True):
    """The new pace of the stages that are left. Values that are not given stay as they are."""

    max_concurrency: Concurrency | UnsetType = UNSET
    tolerated: NewTolerated | UnsetType = UNSET
    bake_seconds: BakeSeconds | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET

    def new_pace(self, *, max_concurrency: int) -> records.NewPace:
        """``max_concurrency`` is the control plane's own limit of tenants that are moved at once."""
        if or_default(self.max_concurrency, 0) > max_concurrency:
            raise too_many_at_once(max_concurrency)
        tolerated: str | None = or_default(self.tolerated)
        return records.NewPace(
            or_default(self.max_concurrency),
            share_of(tolerated) if tolerated is not None else None,
            or_default(self.bake_seconds),
        )


def too_many_at_once(maximum: int) -> InvalidRequest:
    return InvalidRequest(f"maxConcurrency: this control plane moves at most {maximum} tenants at once.")


class ListRollouts(WireRequest, frozen=True, kw_only=True):
    cursor: Annotated[RolloutId, Meta(description="The cursor of the previous page.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE, description="The number of rollouts per page.")] = PAGE_SIZE
    open: Annotated[
        bool,
        Meta(
            description="List all rollouts that are active or halted, and no dry runs. There are no pages then. Halted "
            "rollouts are listed if they are among the newest."
        ),
    ] = False
