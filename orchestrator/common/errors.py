"""Everything that can go wrong, in one tree.

    BerthError
    ├── InvalidRequest          what came in cannot be understood; nothing was written or started
    │   ├── InvalidTenantId     the tenant id is not on the allow-list
    │   └── InvalidName         no control plane can have this name
    ├── Conflict                what is asked for contradicts what is recorded
    │   ├── LostOwnership       an operation no longer owns its tenant and may not write
    │   ├── QueueOwnedElsewhere another stack already holds the tenant's queue
    │   ├── StackHasGone        a stack has taken its queue back, so it is served no more
    │   └── ReleaseIsImmutable  a version was published before with another template
    ├── UnknownRelease          a version that was never published
    ├── StackNotOurs            a stack bears a tenant's name, but Berth did not make it for that tenant
    │   └── StackOutOfReach     the stack on record has a name that this deployment may not change stacks of
    ├── Unconfirmed             a request says that it is CloudFormation's, and CloudFormation does not
    ├── UnreadableRows          rows that somebody else wrote, and that do not say what such rows say
    ├── QueueOutOfReach         a queue that Berth's functions may not look at
    ├── Throttled               AWS asked us to slow down; try again later
    ├── Unsettled               a request could not be answered now; try again
    └── MissingSetting          a function was deployed without something that it needs

Further branches stand beside what raises them:

- orchestrator/local: ``LocalError``
- orchestrator/cli: ``ControlPlaneNotFound``, ``ApiProblem``, ``OperationFailed``, ``NotConfirmed``, ``NoRollout``
- stacks: ``SettingInvalid``, ``ReleaseMissing``, ``ReleaseChanged``, ``ReleaseUnexpected``

Expected outcomes (busy, still working, not ready) are not here: use cases return those as data.
"""


class BerthError(Exception):
    """The root: catch this to catch whatever Berth raises on purpose."""


class InvalidRequest(BerthError):
    """What came in cannot be understood. Nothing was written, nothing was started."""


class InvalidTenantId(InvalidRequest):
    """The tenant id is not on the allow-list of :mod:`orchestrator.common.tenant_ids`."""


class InvalidName(InvalidRequest):
    """No control plane can have this name: :mod:`orchestrator.tenants.names` says which it can have."""


class Conflict(BerthError):
    """What is asked for contradicts what is recorded."""


class LostOwnership(Conflict):
    """An operation no longer owns its tenant, so nothing it says may be written."""


class QueueOwnedElsewhere(Conflict):
    """Another stack already holds the tenant's queue."""


class StackHasGone(Conflict):
    """A stack has taken its queue back, so it cannot be served any more."""


class ReleaseIsImmutable(Conflict):
    """A version was published before, with another template."""


class UnknownRelease(BerthError):
    """A version that was never published."""


class StackNotOurs(BerthError):
    """A stack bears a tenant's stack name, but Berth did not make it for that tenant."""


class StackOutOfReach(StackNotOurs):
    """The tenant's stack on record has a name that this deployment may not look at or change stacks of."""


class Unconfirmed(BerthError):
    """A request says that it is CloudFormation's, and CloudFormation does not say so. Nothing was done."""


class UnreadableRows(BerthError):
    """Rows of a tenant do not say what such rows say. Somebody else has written them."""


class QueueOutOfReach(BerthError):
    """A queue that Berth's functions may not look at: it bears none of the names of tenants' queues."""


class Throttled(BerthError):
    """AWS asked us to slow down. Never a reason to record a failure."""


class Unsettled(BerthError):
    """The request could not be answered now; the same request may be answered later."""


class MissingSetting(BerthError):
    """A function was deployed without something that it needs."""
