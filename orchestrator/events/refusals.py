"""Why a request about a tenant's configuration is refused. Refusals are data: nothing was written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.common.tenant_ids import TenantId


class EventRefusal(StrEnum):
    """The same words are the kinds of the API's problems."""

    UNKNOWN_TENANT = "unknown-tenant"
    NO_SETTINGS = "no-event-settings"
    NO_SUCH_KEY = "no-such-key"
    KEY_NOT_ACTIVE = "key-not-active"
    NO_SUCH_SOURCE = "no-such-source"
    NO_SUCH_FORM = "no-such-form"
    NO_SUCH_CONNECTION = "no-such-connection"
    NOT_SIGNED = "not-signed"
    HAS_CONNECTIONS = "has-connections"
    LIMIT_REACHED = "limit-reached"
    UNKNOWN_EVENT = "unknown-event"
    EXPIRES_SOON = "expires-soon"
    NOTHING_TO_RESEND = "nothing-to-resend"
    CONNECTION_DISABLED = "connection-disabled"
    NO_SUCH_REPLAY = "no-such-replay"
    REPLAY_ENDED = "replay-ended"


@dataclass(frozen=True, slots=True)
class Refused:
    kind: EventRefusal
    tenant: TenantId
    reason: str
