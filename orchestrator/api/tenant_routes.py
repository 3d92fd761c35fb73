"""The operators' routes for tenants, with their problems."""

from __future__ import annotations

from orchestrator.api.problems import (
    FLEET_FULL,
    INVALID_REQUEST,
    NO_RELEASE,
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
from orchestrator.api.tenant_models import (
    Accepted,
    CreateTenant,
    DeleteTenant,
    DescribedTenant,
    GetTenant,
    LabelTenant,
    ListTenants,
    MoveTenant,
    PinTenant,
    RetryTenant,
    Tenant,
    Tenants,
    Unchanged,
    UnpinTenant,
    UpgradeTenant,
)
from orchestrator.tenants.admission import Refusal

# Problems

UNKNOWN_RELEASE = Problem(
    Refusal.UNKNOWN_RELEASE,
    422,
    "There is no such release",
    "The version was never published.",
    required=("tenantId",),
)
RELEASE_WITHDRAWN = Problem(
    Refusal.RELEASE_WITHDRAWN,
    409,
    "The release was withdrawn",
    "An operator has withdrawn the release, so nothing chooses it any more. The detail says who, when and why, and "
    "what to do instead.",
    required=("tenantId",),
)
OTHER_TIER = Problem(
    Refusal.OTHER_TIER,
    409,
    "The release is of another tier",
    "A tenant can be created at, moved to and pinned to releases of its own tier only. The detail names both tiers, "
    "and says how to move the tenant to the other one.",
    required=("tenantId",),
)
DOWNGRADE = Problem(
    Refusal.DOWNGRADE,
    409,
    "The operation would be a downgrade",
    "The release is older than the tenant's. To move the tenant back, set allowDowngrade.",
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
    "Another operation holds the tenant's lock. The problem names the operation if it is known.",
    required=("tenantId",),
    optional=("operation", "version", "execution"),
    comes_with={"execution": ("operation", "version"), "operation": ("version",), "version": ("operation",)},
    retry=True,
)
NOT_EMPTY = Problem(
    Refusal.NOT_EMPTY,
    409,
    "The queue is not empty",
    "Deleting the tenant would lose these messages. Receive them, set drainSeconds, or set force.",
    required=("tenantId", "messages"),
)
NOT_ADOPTED = Problem(
    Refusal.NOT_ADOPTED,
    409,
    "The tenant must be adopted first",
    "The tenant is from before Berth, and its stack is not recorded. The tenant cannot be upgraded, and deleting it "
    "would leave the stack behind.",
    required=("tenantId",),
)
NOTHING_TO_RETRY = Problem(
    Refusal.NOTHING_TO_RETRY,
    409,
    "There is nothing to retry",
    "The tenant's latest operation succeeded, or was a delete that failed and left the tenant in service.",
    required=("tenantId",),
)

# Routes

ALWAYS = (INVALID_REQUEST, NOT_THROUGH_THE_API, TRY_AGAIN)
"""The problems that every route of the operators' function can answer with."""
_ACCEPTED = Answer(
    202,
    Accepted,
    "The operation was started, by this request or by an equal one before it. Follow its progress at Location.",
    (RETRY_AFTER, location("tenant", "/tenants", "A-Za-z0-9-")),
)
_UNCHANGED = Answer(200, Unchanged, "The tenant is already in the requested state.")

CREATE_TENANT: Route[CreateTenant, Accepted | DescribedTenant] = Route(
    name="createTenant",
    method="PUT",
    path="/tenants/{tenantId}",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Create a tenant, or create a deleted tenant again",
    description="If the tenant exists, this sets its labels and its pin. Setting a pin does not move the tenant. A "
    "tenant that exists in another tier than the request names is not changed.",
    request=CreateTenant,
    answers=(Answer(200, DescribedTenant, "The tenant exists. Its labels and its pin are recorded."), _ACCEPTED),
    problems=(*ALWAYS, BUSY, FLEET_FULL, UNKNOWN_RELEASE, RELEASE_WITHDRAWN, NO_RELEASE, OTHER_TIER),
)
GET_TENANT: Route[GetTenant, Tenant] = Route(
    name="getTenant",
    method="GET",
    path="/tenants/{tenantId}",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="Get one tenant, with its history",
    request=GetTenant,
    answers=(Answer(200, Tenant, "The tenant."),),
    problems=(*ALWAYS, UNKNOWN_TENANT),
)
DELETE_TENANT: Route[DeleteTenant, Accepted | Unchanged] = Route(
    name="deleteTenant",
    method="DELETE",
    path="/tenants/{tenantId}",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Delete a tenant and its queue",
    description="A tenant whose queue has messages is not deleted, unless drainSeconds or force is set. Events in its "
    "inbox count as messages, but are not drained: acknowledge them, or set force. While the tenant is being deleted, "
    "getQueue answers 409; after that, 410.",
    request=DeleteTenant,
    answers=(_UNCHANGED, _ACCEPTED),
    problems=(*ALWAYS, NOT_EMPTY, NOT_ADOPTED, BUSY),
)


def _warning_about_upgrade(request: UpgradeTenant) -> str | None:
    loses = (
        f"This may replace or remove queues of tenant {request.tenant_id} with every message in them, and its tables, "
        "buckets and other resources with their data."
    )
    return loses if request.allow_replacement else None


UPGRADE_TENANT: Route[UpgradeTenant, Accepted | Unchanged] = Route(
    name="upgradeTenant",
    method="POST",
    path="/tenants/{tenantId}/upgrade",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Move a tenant to a release",
    description="getQueue answers with the queue during the upgrade, and also after an upgrade that failed.",
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
        RELEASE_WITHDRAWN,
        NO_RELEASE,
        OTHER_TIER,
    ),
    warning=_warning_about_upgrade,
)
MOVE_TENANT: Route[MoveTenant, Accepted | Unchanged] = Route(
    name="moveTenant",
    method="POST",
    path="/tenants/{tenantId}/move",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Move a tenant to another tier",
    description="The tenant is updated to the current release of the tier, with the same review as an upgrade: a move "
    "that would replace or remove a queue fails. Until the move has succeeded, the tenant is of its former tier.",
    request=MoveTenant,
    answers=(_UNCHANGED, _ACCEPTED),
    problems=(
        *ALWAYS,
        UNKNOWN_TENANT,
        NOT_PROVISIONED,
        PINNED,
        NOT_ADOPTED,
        BUSY,
        TENANT_DELETED,
        NO_RELEASE,
    ),
)
RETRY_TENANT: Route[RetryTenant, Accepted | Unchanged] = Route(
    name="retryTenant",
    method="POST",
    path="/tenants/{tenantId}/retry",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Repeat the latest operation with the same options, if it failed",
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
        RELEASE_WITHDRAWN,
        OTHER_TIER,
    ),
)
LABEL_TENANT: Route[LabelTenant, DescribedTenant] = Route(
    name="labelTenant",
    method="POST",
    path="/tenants/{tenantId}/labels",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Set and remove single labels of a tenant",
    description="The other labels stay. createTenant replaces all labels instead.",
    request=LabelTenant,
    answers=(Answer(200, DescribedTenant, "The labels are recorded."),),
    problems=(*ALWAYS, UNKNOWN_TENANT, BUSY, TENANT_DELETED),
)
PIN_TENANT: Route[PinTenant, DescribedTenant] = Route(
    name="pinTenant",
    method="PUT",
    path="/tenants/{tenantId}/pin",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Pin a tenant to a release",
    description="Pinning does not move the tenant. Upgrades and rollouts move a pinned tenant only to the release of "
    "its pin.",
    request=PinTenant,
    answers=(Answer(200, DescribedTenant, "The pin is recorded."),),
    problems=(*ALWAYS, UNKNOWN_TENANT, BUSY, TENANT_DELETED, UNKNOWN_RELEASE, RELEASE_WITHDRAWN, OTHER_TIER),
)
UNPIN_TENANT: Route[UnpinTenant, DescribedTenant] = Route(
    name="unpinTenant",
    method="DELETE",
    path="/tenants/{tenantId}/pin",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Remove a tenant's pin",
    request=UnpinTenant,
    answers=(Answer(200, DescribedTenant, "The tenant has no pin."),),
    problems=(*ALWAYS, UNKNOWN_TENANT, BUSY, TENANT_DELETED),
)
LIST_TENANTS: Route[ListTenants, Tenants] = Route(
    name="listTenants",
    method="GET",
    path="/tenants",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="List the tenants, page by page",
    description="Tenants are sorted by state, then by version, then by id. Deleted tenants are listed only with "
    "state=DELETED. With label, pinned or tier, a page may have fewer tenants than limit, even none: continue until "
    "the cursor is null.",
    request=ListTenants,
    answers=(Answer(200, Tenants, "A page of tenants."),),
    problems=ALWAYS,
)
ROUTES = (
    CREATE_TENANT,
    GET_TENANT,
    DELETE_TENANT,
    UPGRADE_TENANT,
    MOVE_TENANT,
    RETRY_TENANT,
    LABEL_TENANT,
    PIN_TENANT,
    UNPIN_TENANT,
    LIST_TENANTS,
)
