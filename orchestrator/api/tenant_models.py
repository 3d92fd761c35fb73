"""The requests and answers of the operators' routes for tenants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.fields import (
    Altered,
    Attempt,
    Count,
    Execution,
    GivenReason,
    Labels,
    Moment,
    OnlyTrue,
    Operation,
    OperationStatus,
    OperationVersion,
    PositiveCount,
    QueueArn,
    QueueUrl,
    Reason,
    RequestedBy,
    Resources,
    RetryAfterSeconds,
    RootCause,
    TenantIdRequest,
    TenantIdText,
    TenantState,
    Text,
    Tier,
    Version,
    Wire,
    WireRequest,
    keys_of,
    or_default,
    whole,
)
from orchestrator.common.input_limits import LABEL_NAME_PATTERN, LABEL_VALUE_PATTERN, MAX_LABELS
from orchestrator.tenants import records
from orchestrator.tenants.deadlines import MAX_DRAIN_SECONDS
from orchestrator.tenants.fleet import HISTORY_PAGE_SIZE, PAGE_SIZE
from orchestrator.tenants.history import ChangeKind
from orchestrator.tenants.ports import LabelEdit
from orchestrator.tenants.records import Request

MAX_PAGE_SIZE = 500
_NAME, _VALUE = (pattern.removeprefix("^").removesuffix("$") for pattern in (LABEL_NAME_PATTERN, LABEL_VALUE_PATTERN))
_LABEL_SELECTOR = rf"^{_NAME}={_VALUE}(,{_NAME}={_VALUE}){{0,{MAX_LABELS - 1}}}\Z"

# Requests


class CreateTenant(TenantIdRequest, frozen=True, kw_only=True):
    version: (
        Annotated[
            Version | None,
            Meta(
                description="The release to create the tenant at and to pin it to. null removes the pin of an "
                "existing tenant."
            ),
        ]
        | UnsetType
    ) = UNSET
    labels: Labels | UnsetType = UNSET
    tier: (
        Annotated[
            Tier,
            Meta(
                description="The tier to create the tenant in, at the tier's current release. Default: the tier that a "
                "create that failed had, else the tier of version, else the control plane's default tier."
            ),
        ]
        | UnsetType
    ) = UNSET
    reason: Reason | UnsetType = UNSET

    @property
    def unpin(self) -> bool:
        return self.version is None

    def to_domain(self, by: str) -> Request:
        return Request(
            by=by,
            labels=or_default(self.labels),
            pin=or_default(self.version),
            tier=or_default(self.tier),
            reason=or_default(self.reason, ""),
        )


class UpgradeTenant(TenantIdRequest, frozen=True, kw_only=True):
    version: (
        Annotated[
            Version, Meta(description="The release to move to. Default: the tenant's pin, or else the current release.")
        ]
        | UnsetType
    ) = UNSET
    allow_downgrade: Annotated[bool, Meta(description="Allow a move to an older release.")] = False
    allow_replacement: Annotated[
        bool, Meta(description="Allow an upgrade that replaces or removes a queue. The messages in the queue are lost.")
    ] = False
    reason: Reason | UnsetType = UNSET

    def to_domain(self, by: str) -> Request:
        return Request(
            by=by,
            allow_downgrade=self.allow_downgrade,
            allow_replacement=self.allow_replacement,
            reason=or_default(self.reason, ""),
        )


class MoveTenant(TenantIdRequest, frozen=True, kw_only=True):
    tier: Annotated[Tier, Meta(description="The tier to move the tenant to, at the tier's current release.")]
    reason: Reason | UnsetType = UNSET

    def to_domain(self, by: str) -> Request:
        return Request(by=by, reason=or_default(self.reason, ""))


class RetryTenant(TenantIdRequest, frozen=True, kw_only=True):
    """A retry takes no parameters besides a reason."""

    reason: Reason | UnsetType = UNSET


class LabelTenant(TenantIdRequest, frozen=True, kw_only=True):
    """Changes single labels. A label that is set and removed is set."""

    set: Annotated[Labels, Meta(description="The labels to add or to change.")] | UnsetType = UNSET
    remove: (
        Annotated[
            list[Annotated[str, Meta(pattern=whole(LABEL_NAME_PATTERN))]],
            Meta(max_length=MAX_LABELS, description="The names of the labels to remove.", examples=[["plan"]]),
        ]
        | UnsetType
    ) = UNSET
    reason: Reason | UnsetType = UNSET

    def edit(self) -> LabelEdit:
        return LabelEdit(or_default(self.set, {}), or_default(self.remove, []))

    def to_domain(self, by: str) -> Request:
        return Request(by=by, reason=or_default(self.reason, ""))


class PinTenant(TenantIdRequest, frozen=True, kw_only=True):
    version: Annotated[Version, Meta(description="The release to pin the tenant to.")]
    reason: Reason | UnsetType = UNSET

    def to_domain(self, by: str) -> Request:
        return Request(by=by, reason=or_default(self.reason, ""))


class UnpinTenant(TenantIdRequest, frozen=True, kw_only=True):
    reason: Reason | UnsetType = UNSET

    def to_domain(self, by: str) -> Request:
        return Request(by=by, reason=or_default(self.reason, ""))


class DeleteTenant(TenantIdRequest, frozen=True, kw_only=True):
    force: Annotated[bool, Meta(description="Delete the tenant even if its queue has messages.")] = False
    drain_seconds: Annotated[
        int, Meta(ge=0, le=MAX_DRAIN_SECONDS, description="Wait this long for the queue to become empty.")
    ] = 0
    reason: Reason | UnsetType = UNSET

    def to_domain(self, by: str) -> Request:
        return Request(by=by, force=self.force, drain_seconds=self.drain_seconds, reason=or_default(self.reason, ""))


class GetTenant(TenantIdRequest, frozen=True, kw_only=True):
    history_before: (
        Annotated[
            str,
            Meta(
                pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z\Z",
                description="Show the entries of the history before this time: the earlierThan of the previous page.",
                examples=["2026-11-16T12:00:00.000Z"],
            ),
        ]
        | UnsetType
    ) = UNSET


class ListTenants(WireRequest, frozen=True, kw_only=True):
    state: TenantState | UnsetType = UNSET
    version: Version | UnsetType = UNSET
    label: (
        Annotated[
            str,
            Meta(
                pattern=_LABEL_SELECTOR,
                max_length=4_000,
                description="Only tenants with this label, as NAME=VALUE. Several are separated by commas: the tenants "
                "have all of them.",
                examples=["plan=gold"],
            ),
        ]
        | UnsetType
    ) = UNSET
    pinned: (
        Annotated[bool, Meta(description="Only tenants that are pinned, or only those that are not.")] | UnsetType
    ) = UNSET
    prefix: (
        Annotated[
            str,
            Meta(
                pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,39}\Z",
                description="Only tenants whose ids begin with this text. With berth-warm-, the stacks are listed that "
                "are kept ready for new tenants, and are no tenants yet.",
                examples=["ac"],
            ),
        ]
        | UnsetType
    ) = UNSET
    tier: Annotated[Tier, Meta(description="Only tenants of this tier.")] | UnsetType = UNSET
    cursor: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=400,
                description="The cursor of the previous page. The filters must be the same.",
            ),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE, description="The number of tenants per page.")] = PAGE_SIZE

    @property
    def labels(self) -> dict[str, str]:
        given = or_default(self.label)
        pairs = [each.partition("=") for each in given.split(",")] if given else []
        return {name: value for name, _, value in pairs}


# Answers


class Accepted(Wire, frozen=True, kw_only=True):
    """The operation that this request, or an equal one before it, started."""

    tenant_id: TenantIdText
    state: Literal["PROVISIONING", "UPDATING", "DELETING"]
    operation: Operation
    version: OperationVersion
    attempt: Attempt
    execution: Execution
    retry_after_seconds: RetryAfterSeconds


class Unchanged(Wire, frozen=True, kw_only=True):
    """The tenant is already in the requested state."""

    tenant_id: TenantIdText
    status: Literal["UNCHANGED"]
    detail: Text


class DescribedTenant(Wire, frozen=True, kw_only=True):
    """The labels and the pin of a tenant, before and after the request. UNCHANGED has neither."""

    tenant_id: TenantIdText
    status: Literal["CHANGED", "UNCHANGED"]
    detail: Text
    before: RecordedState | UnsetType = UNSET
    after: RecordedState | UnsetType = UNSET


class CurrentOperation(Wire, frozen=True, kw_only=True):
    """The operation that holds the tenant's lock."""

    operation: Operation
    version: OperationVersion
    attempt: Attempt
    execution: Execution
    started_at: Moment
    requested_by: RequestedBy
    reason: GivenReason


class Audit(Wire, frozen=True, kw_only=True):
    """The status of the latest attempt at an operation."""

    operation: Operation
    version: OperationVersion
    attempt: Attempt
    status: OperationStatus
    execution: Execution
    root_cause: RootCause | None
    updated_at: Moment
    requested_by: RequestedBy
    reason: GivenReason
    expected_at: (
        Annotated[
            Moment,
            Meta(description="Many creates were requested at once, and this one waits: about when it has its turn."),
        ]
        | UnsetType
    ) = UNSET


class AskingResource(Wire, frozen=True, kw_only=True):
    """The resource of another stack that made the request."""

    stack_id: str
    logical_id: str


class RecordedRequest(Wire, frozen=True, kw_only=True):
    """The options of a request. Options that were not given are left out."""

    resource: AskingResource | UnsetType = UNSET
    explicit: (
        Annotated[OnlyTrue, Meta(description="The create was requested explicitly, not started by getQueue.")]
        | UnsetType
    ) = UNSET
    labels: Labels | UnsetType = UNSET
    pin: Version | UnsetType = UNSET
    version: Annotated[Version, Meta(description="The release that the request named.")] | UnsetType = UNSET
    allow_downgrade: OnlyTrue | UnsetType = UNSET
    allow_replacement: OnlyTrue | UnsetType = UNSET
    force: OnlyTrue | UnsetType = UNSET
    drain_seconds: PositiveCount | UnsetType = UNSET
    asked_at: (
        Annotated[Moment, Meta(description="The time of the request, if that was before its execution started.")]
        | UnsetType
    ) = UNSET
    own: (
        Annotated[OnlyTrue, Meta(description="The request is only for a tenant that the caller created.")] | UnsetType
    ) = UNSET
    unserved: (
        Annotated[OnlyTrue, Meta(description="The request is only for a tenant that never had a queue.")] | UnsetType
    ) = UNSET
    tier: Annotated[Tier, Meta(description="The tier that the request named.")] | UnsetType = UNSET


class RecordedState(Wire, frozen=True, kw_only=True):
    """The recorded values of a tenant before or after a change: labels and pin. A correction has the stack's values; an
    adoption also has the state in which the tenant is listed, and the operations that the adoption ended.
    """

    labels: Labels | UnsetType = UNSET
    pinned_version: Version | UnsetType | None = UNSET
    queue_url: QueueUrl | UnsetType | None = UNSET
    queue_arn: QueueArn | UnsetType | None = UNSET
    stack_id: str | UnsetType | None = UNSET
    version: str | UnsetType | None = UNSET
    state: TenantState | UnsetType | None = UNSET
    closed: list[Text] | UnsetType = UNSET


def _all_null(*names: str) -> dict[str, Any]:
    return {name: {"type": "null"} for name in names}


class HistoryEntry(Wire, frozen=True, kw_only=True):
    """One entry of a tenant's history. Entries are appended, never changed. All entries have the same fields; fields
    that do not apply are null.
    """

    operation: Text | None
    version: OperationVersion
    attempt: Attempt | None
    status: OperationStatus | None
    execution: Execution | None
    root_cause: RootCause | None
    at: Annotated[Moment | None, Meta(description="The time of the entry. null only if the row has none.")]
    requested_by: RequestedBy
    reason: GivenReason
    request: Annotated[RecordedRequest | None, Meta(description="null in an entry that cannot be read.")]
    before: RecordedState | None
    after: RecordedState | None
    altered: Altered

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "oneOf": [
            {
                "description": "A step of an operation.",
                "properties": {
                    "operation": {"enum": list(records.Operation)},
                    "attempt": {"type": "integer"},
                    "status": {"type": "string"},
                    "execution": {"type": "string"},
                    "at": {"type": "string"},
                    **_all_null("before", "after"),
                },
            },
            {
                "description": "A change of the tenant's record that was not an operation: labels or pin were set, a "
                "reconciliation corrected the metadata, somebody changed the stack by hand so that it has another "
                "queue, or a tenant from before Berth was adopted.",
                "properties": {
                    "operation": {"enum": list(ChangeKind)},
                    **_all_null("version", "attempt", "status", "execution", "rootCause"),
                    "at": {"type": "string"},
                    **{name: {"type": "object"} for name in ("request", "before", "after")},
                },
            },
            {
                "description": "A row of the history that Berth cannot read as an entry: somebody added it by hand or "
                "overwrote an entry.",
                "properties": {
                    **_all_null("operation", "version", "attempt", "status", "execution", "rootCause"),
                    **_all_null("requestedBy", "reason", "request", "before", "after"),
                    "altered": {"const": True},
                },
            },
        ]
    }


class ListedTenant(Wire, frozen=True, kw_only=True):
    """A summary of one tenant."""

    tenant_id: TenantIdText
    state: TenantState
    version: str | None
    pinned_version: Annotated[str | None, Meta(description="The release that the tenant is pinned to.")]
    tier: Annotated[
        str | None,
        Meta(
            description="The tier of the tenant: of the release that it is at, or is to be created at. null if the "
            "tenant was deleted."
        ),
    ]
    labels: Labels
    updated_at: Moment | None
    queue_url: QueueUrl | None
    queue_arn: QueueArn | None
    root_cause: RootCause | None


class Tenant(ListedTenant, frozen=True, kw_only=True):
    """One tenant with all details."""

    created_at: Moment | None
    stack_id: str | None
    resources: Resources = msgspec.field(default_factory=dict)
    current_operation: CurrentOperation | None
    audits: Annotated[
        list[Audit], Meta(description="The latest status of each operation at each version, oldest first.")
    ]
    history: Annotated[
        list[HistoryEntry],
        Meta(
            max_length=HISTORY_PAGE_SIZE,
            description="The newest events of the tenant, or those before historyBefore; the oldest first. Entries are "
            "never changed or removed.",
        ),
    ]
    earlier_than: Annotated[
        Moment | None,
        Meta(description="The historyBefore for the page of earlier events. null if there are none."),
    ]


class Tenants(Wire, frozen=True, kw_only=True):
    """One page of tenants."""

    tenants: Annotated[list[ListedTenant], Meta(max_length=MAX_PAGE_SIZE)]
    cursor: Annotated[
        Annotated[str, Meta(min_length=1, max_length=400)] | None,
        Meta(description="The cursor for the next page. null on the last page."),
    ]


class TenantCounts(Wire, frozen=True, kw_only=True):
    """Numbers of tenants. Deleted tenants are not counted."""

    total: Count
    by_state: Annotated[dict[TenantState, PositiveCount], keys_of("TenantState")]
