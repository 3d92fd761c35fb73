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
    LIMIT_REACHED = "limit-reached"


@dataclass(frozen=True, slots=True)
class Refused:
    kind: EventRefusal
    tenant: TenantId
    reason: str
