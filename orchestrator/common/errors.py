"""All exceptions that Berth raises on purpose, in one tree.

    BerthError
    ├── InvalidRequest          the input is invalid; nothing was written or started
    │   ├── InvalidTenantId     the tenant id does not match the allowed pattern
    │   └── InvalidName         the name is not allowed for a control plane
    ├── Conflict                the request contradicts the recorded state
    │   ├── LostOwnership       an operation no longer owns its tenant and may not write
    │   ├── QueueOwnedElsewhere another stack already owns the tenant's queue
    │   ├── StackHasGone        the stack has withdrawn its queue, so the queue can no longer be served
    │   └── ReleaseIsImmutable  the version was published before with another template
    ├── UnknownRelease          the version was never published
    ├── StackNotOurs            a stack has a tenant's stack name, but Berth did not create it for that tenant
    │   └── StackOutOfReach     this deployment has no permission for the name of the tenant's recorded stack
    ├── Unconfirmed             CloudFormation does not confirm a request that claims to come from CloudFormation
    ├── UnreadableRows          a tenant's rows cannot be read, because something other than Berth wrote them
    ├── QueueOutOfReach         Berth's functions have no permission for a queue with this name
    ├── Throttled               AWS throttled a call; try again later
    │   └── Contended           another request was changing the same rows
    ├── Unsettled               the request could not be completed now; try again
    └── MissingSetting          a function was deployed without a setting that it needs

Packages that only people use define their own branches of the tree: :mod:`orchestrator.client.errors`,
:mod:`orchestrator.cli.errors`, :mod:`orchestrator.console.visit`, :mod:`orchestrator.local.errors`, and ``stacks``.

Expected outcomes (busy, still working, not ready) are not exceptions: use cases return them as data.
"""


class BerthError(Exception):
    """The root of the tree: catch it to catch every exception that Berth raises on purpose."""


class InvalidRequest(BerthError):
    """The input is invalid. Nothing was written, nothing was started."""


class InvalidTenantId(InvalidRequest):
    """The tenant id does not match the pattern of :mod:`orchestrator.common.tenant_ids`."""


class InvalidName(InvalidRequest):
    """The name is not allowed for a control plane: :mod:`orchestrator.tenants.names` has the rules."""


class Conflict(BerthError):
    """The request contradicts the recorded state."""


class LostOwnership(Conflict):
    """An operation no longer owns its tenant, so its results must not be written."""


class QueueOwnedElsewhere(Conflict):
    """Another stack already owns the tenant's queue."""


class StackHasGone(Conflict):
    """The stack has withdrawn its queue, so the queue can no longer be served."""


class ReleaseIsImmutable(Conflict):
    """The version was published before, with another template."""


class UnknownRelease(BerthError):
    """The version was never published."""


class StackNotOurs(BerthError):
    """A stack has a tenant's stack name, but Berth did not create it for that tenant."""


class StackOutOfReach(StackNotOurs):
    """This deployment has no permission to read or change stacks with the name of the tenant's recorded stack."""


class Unconfirmed(BerthError):
    """CloudFormation does not confirm a request that claims to come from CloudFormation. Nothing was done."""


class UnreadableRows(BerthError):
    """A tenant's rows cannot be read. Something other than Berth wrote them."""


class QueueOutOfReach(BerthError):
    """Berth's functions have no permission for the queue, because its name is not that of a tenant's queue."""


class Throttled(BerthError):
    """AWS throttled a call. Throttling is never recorded as a failure."""


class Contended(Throttled):
    """Another request was changing the same rows at this moment. Nothing was written."""


class Unsettled(BerthError):
    """The request could not be completed now. The same request may succeed later."""


class MissingSetting(BerthError):
    """A function was deployed without a setting that it needs."""
