"""What operators ask for about tenants and releases: the requests, the answers, the problems, and the routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.fields import (
    Altered,
    Attempt,
    Count,
    Execution,
    GivenReason,
    Labels,
    Moment,
    NothingMore,
    OfTenant,
    OnlyTrue,
    Operation,
    OperationStatus,
    OperationVersion,
    QueueArn,
    QueueUrl,
    Reason,
    RequestedBy,
    RetryAfterSeconds,
    RootCause,
    SomeOf,
    TenantIdText,
    TenantState,
    Text,
    Version,
    Wire,
    WireRequest,
    former_name_of,
    given,
    keys_of,
)
from orchestrator.api.problems import (
    FLEET_FULL,
    INVALID_REQUEST,
    NOT_PROVISIONED,
    NOT_THROUGH_THE_API,
    TENANT_DELETED,
    TRY_AGAIN,
    UNKNOWN_TENANT,
    Problem,
)
from orchestrator.api.route import (
    RETRY_AFTER,
    Answer,
    Audience,
    Rate,
    Route,
    location,
)
from orchestrator.tenants import records
from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.deadlines import MOST_DRAIN_SECONDS
from orchestrator.tenants.fleet import PAGE_SIZE
from orchestrator.tenants.records import ChangeKind, Request

MAX_PAGE_SIZE = 500

# Requests


class CreateTenant(OfTenant, frozen=True, kw_only=True):
    version: (
        Annotated[
            Version | None,
            Meta(
                description="The release to create the tenant at and to pin it to. null lifts the pin of a tenant "
                "that is there."
            ),
        ]
        | UnsetType
    ) = UNSET
    labels: Labels | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET

    @property
    def unpin(self) -> bool:
        return self.version is None

    def asked(self, by: str) -> Request:
        return Request(by=by, labels=given(self.labels), pin=given(self.version), reason=given(self.reason, ""))


class UpgradeTenant(OfTenant, frozen=True, kw_only=True):
    version: (
        Annotated[
            Version, Meta(description="Without it: the release that the tenant is pinned to, or else the current one.")
        ]
        | UnsetType
    ) = UNSET
    allow_downgrade: Annotated[bool, Meta(description="Also back to an older release.")] = False
    allow_replacement: Annotated[
        bool, Meta(description="Also if that replaces or removes a queue, with the messages in it.")
    ] = False
    reason: Reason | UnsetType = UNSET

    def asked(self, by: str) -> Request:
        return Request(
            by=by,
            allow_downgrade=self.allow_downgrade,
            allow_replacement=self.allow_replacement,
            reason=given(self.reason, ""),
        )


class RetryTenant(OfTenant, frozen=True, kw_only=True):
    """There is nothing more to say."""

    reason: Reason | UnsetType = UNSET


class PinTenant(OfTenant, frozen=True, kw_only=True):
    version: Annotated[Version, Meta(description="The release to stay at.")]
    reason: Reason | UnsetType = UNSET

    def asked(self, by: str) -> Request:
        return Request(by=by, reason=given(self.reason, ""))


class UnpinTenant(OfTenant, frozen=True, kw_only=True):
    reason: Reason | UnsetType = UNSET

    def asked(self, by: str) -> Request:
        return Request(by=by, reason=given(self.reason, ""))


class DeleteTenant(OfTenant, frozen=True, kw_only=True):
    force: Annotated[bool, Meta(description="Also with messages in the queue.")] = False
    drain_seconds: Annotated[
        int, Meta(ge=0, le=MOST_DRAIN_SECONDS, description="Wait this long for the queue to become empty.")
    ] = 0
    reason: Reason | UnsetType = UNSET

    def asked(self, by: str) -> Request:
        return Request(by=by, force=self.force, drain_seconds=self.drain_seconds, reason=given(self.reason, ""))


class ListTenants(WireRequest, frozen=True, kw_only=True):
    state: TenantState | UnsetType = UNSET
    status: Annotated[TenantState, former_name_of("state")] | UnsetType = UNSET
    version: Version | UnsetType = UNSET
    cursor: (
        Annotated[str, Meta(min_length=1, max_length=400, description="From the page before, with the same filters.")]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE, description="How many tenants to a page.")] = PAGE_SIZE

    @property
    def wanted_state(self) -> records.TenantState | None:
        wanted: records.TenantState | None = given(self.state, given(self.status))
        return wanted


# Answers


class Accepted(Wire, frozen=True, kw_only=True):
    """The operation that was started, now or before."""

    tenant_id: TenantIdText
    state: Literal["PROVISIONING", "UPDATING", "DELETING"] | UnsetType = UNSET
    status: Annotated[Literal["PROVISIONING", "UPDATING", "DELETING"], former_name_of("state")]
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


class CurrentOperation(Wire, frozen=True, kw_only=True):
    """The one operation that owns the tenant now."""

    operation: Operation
    version: OperationVersion
    attempt: Attempt
    execution: Execution
    started_at: Moment
    requested_by: RequestedBy
    reason: GivenReason


class Audit(Wire, frozen=True, kw_only=True):
    """How the latest try at an operation stands."""

    operation: Operation
    version: OperationVersion
    attempt: Attempt
    status: OperationStatus
    execution: Execution
    root_cause: RootCause | None
    updated_at: Moment
    requested_by: RequestedBy
    reason: GivenReason


class AskingResource(Wire, frozen=True, kw_only=True):
    """The resource of another stack that asked."""

    stack_id: str
    logical_id: str


class RecordedRequest(Wire, frozen=True, kw_only=True):
    """All that was asked for beyond the operation itself. What was not said is left out."""

    resource: AskingResource | UnsetType = UNSET
    explicit: (
        Annotated[OnlyTrue, Meta(description="Somebody asked for the tenant itself, not just for its queue.")]
        | UnsetType
    ) = UNSET
    labels: Labels | UnsetType = UNSET
    pin: Version | UnsetType = UNSET
    version: Annotated[Version, Meta(description="The release that was named.")] | UnsetType = UNSET
    allow_downgrade: OnlyTrue | UnsetType = UNSET
    allow_replacement: OnlyTrue | UnsetType = UNSET
    force: OnlyTrue | UnsetType = UNSET
    drain_seconds: SomeOf | UnsetType = UNSET
    asked_at: Annotated[Moment, Meta(description="When, if that was before its execution started.")] | UnsetType = UNSET
    own: (
        Annotated[OnlyTrue, Meta(description="Only a tenant that was brought into being by whoever asks.")] | UnsetType
    ) = UNSET
    unserved: Annotated[OnlyTrue, Meta(description="Only a tenant that never had a queue.")] | UnsetType = UNSET


class RecordedState(Wire, frozen=True, kw_only=True):
    """What was recorded of the tenant: labels and pin; of a correction, what the stack says; of an adoption, also the
    state that the tenant is listed in, and the operations that were given an end.
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
    """One entry of a tenant's history. Entries are appended, never changed. All have the same fields: what does not
    apply to one is null.
    """

    operation: Text | None
    version: OperationVersion
    attempt: Attempt | None
    status: OperationStatus | None
    execution: Execution | None
    root_cause: RootCause | None
    at: Annotated[Moment | None, Meta(description="null only where the row does not say.")]
    requested_by: RequestedBy
    reason: GivenReason
    request: Annotated[RecordedRequest | None, Meta(description="null in entries from before 0.6.0.")]
    before: RecordedState | None
    after: RecordedState | None
    altered: Altered

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "oneOf": [
            {
                "description": "One thing that happened in an operation.",
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
                "description": "One change of what is recorded about the tenant that was no operation: labels or pin "
                "were set, a reconciliation corrected the metadata, somebody changed the stack by hand and it has "
                "another queue, or a tenant from before Berth was adopted.",
                "properties": {
                    "operation": {"enum": list(ChangeKind)},
                    **_all_null("version", "attempt", "status", "execution", "rootCause"),
                    "at": {"type": "string"},
                    **{name: {"type": "object"} for name in ("request", "before", "after")},
                },
            },
            {
                "description": "A row of the history that is no entry at all: somebody has put it there, or over what "
                "was recorded.",
                "properties": {
                    **_all_null("operation", "version", "attempt", "status", "execution", "rootCause"),
                    **_all_null("requestedBy", "reason", "request", "before", "after"),
                    "altered": {"const": True},
                },
            },
        ]
    }


class ListedTenant(Wire, frozen=True, kw_only=True):
    """One tenant at a glance."""

    tenant_id: TenantIdText
    state: TenantState
    version: str | None
    pinned_version: Annotated[str | None, Meta(description="The release that the tenant is to stay at.")]
    labels: Labels
    updated_at: Moment | None
    queue_url: QueueUrl | None
    queue_arn: QueueArn | None
    root_cause: RootCause | None


class Tenant(ListedTenant, frozen=True, kw_only=True):
    """One tenant in full."""

    created_at: Moment | None
    stack_id: str | None
    current_operation: CurrentOperation | None
    audits: Annotated[list[Audit], Meta(description="The latest of each operation at each version, oldest first.")]
    history: Annotated[
        list[HistoryEntry], Meta(description="All that happened, oldest first. It is only ever added to.")
    ]


class Tenants(Wire, frozen=True, kw_only=True):
    """One page of tenants."""

    tenants: Annotated[list[ListedTenant], Meta(max_length=MAX_PAGE_SIZE)]
    cursor: Annotated[
        Annotated[str, Meta(min_length=1, max_length=400)] | None,
        Meta(description="Where the next page begins. null when this is the last."),
    ]


class TenantCounts(Wire, frozen=True, kw_only=True):
    """Deleted tenants are not counted."""

    total: Count
    by_state: Annotated[dict[TenantState, SomeOf], keys_of("TenantState")]


class Release(Wire, frozen=True, kw_only=True):
    """A published release of the tenant stack."""

    version: Version
    digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z", description="SHA-256 of the template.")]
    template_url: Text
    published_at: Moment
    notes: Annotated[Text | None, Meta(description="What is new in it, from the changelog.")]
    tenants: Annotated[TenantCounts, Meta(description="How many tenants are at it.")]


class Releases(Wire, frozen=True, kw_only=True):
    """The published releases, and how many tenants are at each."""

    current: Annotated[Version, Meta(description="What tenants are created at, unless another is named.")]
    releases: Annotated[list[Release], Meta(description="Newest first.")]
    elsewhere: Annotated[
        dict[str, TenantCounts],
        Meta(
            description="Tenants at versions that are no releases, by version; under the empty one, those that have "
            "none."
        ),
    ]


# Problems

UNKNOWN_RELEASE = Problem(
    Refusal.UNKNOWN_RELEASE,
    422,
    "There is no such release",
    "That version was never published.",
    required=("tenantId",),
)
DOWNGRADE = Problem(
    Refusal.DOWNGRADE,
    409,
    "That would be a downgrade",
    "That release is older than the tenant's. Allow the downgrade.",
    required=("tenantId",),
)
PINNED = Problem(
    Refusal.PINNED,
    409,
    "The tenant is pinned",
    "The tenant is pinned to another release. Change its pin first.",
    required=("tenantId",),
)
BUSY = Problem(
    Refusal.BUSY,
    409,
    "The tenant is busy",
    "Another operation owns the tenant: this one, where it is named.",
    required=("tenantId",),
    optional=("operation", "version", "execution"),
    comes_with={"execution": ("operation", "version"), "operation": ("version",), "version": ("operation",)},
    retry=True,
)
NOT_EMPTY = Problem(
    Refusal.NOT_EMPTY,
    409,
    "The queue is not empty",
    "Deleting would lose these messages. Receive them, drain, or force it.",
    required=("tenantId", "messages"),
)
NOT_ADOPTED = Problem(
    Refusal.NOT_ADOPTED,
    409,
    "The tenant has to be adopted first",
    "The tenant is from before Berth, and its stack is not on record: the tenant cannot be upgraded, and deleting it "
    "would leave the stack behind.",
    required=("tenantId",),
)
NOTHING_TO_RETRY = Problem(
    Refusal.NOTHING_TO_RETRY,
    409,
    "There is nothing to retry",
    "The tenant's latest operation succeeded; or it was a delete that failed and left the tenant in service.",
    required=("tenantId",),
)

# Routes

ALWAYS = (INVALID_REQUEST, NOT_THROUGH_THE_API, TRY_AGAIN)
"""Problems that every route of the operators' function may answer with."""
_ACCEPTED = Answer(
    202,
    Accepted,
    "Under way: this very operation has been started, now or before. See how it goes at Location.",
    (RETRY_AFTER, location("tenant", "/tenants", "A-Za-z0-9-")),
)
_UNCHANGED = Answer(200, Unchanged, "There was nothing to do.")

CREATE_TENANT: Route[CreateTenant, Accepted | Unchanged] = Route(
    name="createTenant",
    method="PUT",
    path="/tenants/{tenantId}",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Create a tenant, also one that was deleted",
    description="Sets labels and pin of a tenant that is there. A pin says where the tenant stays; it moves nothing.",
    request=CreateTenant,
    answers=(Answer(200, Unchanged, "The tenant is there. What was said about it is recorded."), _ACCEPTED),
    problems=(*ALWAYS, BUSY, FLEET_FULL, UNKNOWN_RELEASE),
)
GET_TENANT: Route[OfTenant, Tenant] = Route(
    name="getTenant",
    method="GET",
    path="/tenants/{tenantId}",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="One tenant in full, with its history",
    request=OfTenant,
    answers=(Answer(200, Tenant, "The tenant."),),
    problems=(*ALWAYS, UNKNOWN_TENANT),
)
DELETE_TENANT: Route[DeleteTenant, Accepted | Unchanged] = Route(
    name="deleteTenant",
    method="DELETE",
    path="/tenants/{tenantId}",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Delete a tenant, with its queue",
    description="Not while there are messages, unless they are waited for or given up. From then on getQueue answers "
    "409, and once the tenant is gone 410.",
    request=DeleteTenant,
    answers=(_UNCHANGED, _ACCEPTED),
    problems=(*ALWAYS, NOT_EMPTY, NOT_ADOPTED, BUSY),
)
UPGRADE_TENANT: Route[UpgradeTenant, Accepted | Unchanged] = Route(
    name="upgradeTenant",
    method="POST",
    path="/tenants/{tenantId}/upgrade",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Move a tenant to a release",
    description="The queue is served all the while, and as before should it fail.",
    request=UpgradeTenant,
    answers=(_UNCHANGED, _ACCEPTED),
    problems=(
        *ALWAYS,
        UNKNOWN_TENANT,
        NOT_PROVISIONED,
        DOWNGRADE,
        PINNED,
        NOT_ADOPTED,
        BUSY,
        TENANT_DELETED,
        UNKNOWN_RELEASE,
    ),
)
RETRY_TENANT: Route[RetryTenant, Accepted | Unchanged] = Route(
    name="retryTenant",
    method="POST",
    path="/tenants/{tenantId}/retry",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Try the latest operation again, as it was asked for, if it failed",
    request=RetryTenant,
    answers=(_UNCHANGED, _ACCEPTED),
    problems=(
        *ALWAYS,
        UNKNOWN_TENANT,
        NOTHING_TO_RETRY,
        NOT_PROVISIONED,
        DOWNGRADE,
        PINNED,
        NOT_EMPTY,
        NOT_ADOPTED,
        FLEET_FULL,
        BUSY,
        TENANT_DELETED,
        UNKNOWN_RELEASE,
    ),
)
PIN_TENANT: Route[PinTenant, Unchanged] = Route(
    name="pinTenant",
    method="PUT",
    path="/tenants/{tenantId}/pin",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Have a tenant stay at a release",
    description="It is not moved by this. Upgrades and rollouts move it to that release, and no further.",
    request=PinTenant,
    answers=(Answer(200, Unchanged, "The pin is recorded."),),
    problems=(*ALWAYS, UNKNOWN_TENANT, BUSY, TENANT_DELETED, UNKNOWN_RELEASE),
)
UNPIN_TENANT: Route[UnpinTenant, Unchanged] = Route(
    name="unpinTenant",
    method="DELETE",
    path="/tenants/{tenantId}/pin",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Let a tenant be moved again",
    request=UnpinTenant,
    answers=(Answer(200, Unchanged, "There is no pin any more."),),
    problems=(*ALWAYS, UNKNOWN_TENANT, BUSY, TENANT_DELETED),
)
LIST_TENANTS: Route[ListTenants, Tenants] = Route(
    name="listTenants",
    method="GET",
    path="/tenants",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="All tenants at a glance, a page at a time",
    description="By state, in it by version, in it by id. Deleted tenants are listed only when asked for.",
    request=ListTenants,
    answers=(Answer(200, Tenants, "A page of tenants."),),
    problems=ALWAYS,
)
LIST_RELEASES: Route[NothingMore, Releases] = Route(
    name="listReleases",
    method="GET",
    path="/releases",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="The published releases of the tenant stack, and how many tenants are at each",
    request=NothingMore,
    answers=(Answer(200, Releases, "The releases."),),
    problems=ALWAYS,
)

ROUTES = (
    CREATE_TENANT,
    GET_TENANT,
    DELETE_TENANT,
    UPGRADE_TENANT,
    RETRY_TENANT,
    PIN_TENANT,
    UNPIN_TENANT,
    LIST_TENANTS,
    LIST_RELEASES,
)
