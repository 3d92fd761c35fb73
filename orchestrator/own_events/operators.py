"""The operators' own tenant. It receives Berth's own events like any other events, by its connections or its inbox."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.accepting import Accepting, NewEvent, TooLarge
from orchestrator.events.authorising import Standing
from orchestrator.events.quotas import OverLimit, Quotas
from orchestrator.events.records import Content
from orchestrator.own_events.kinds import Kind, OwnEvent

if TYPE_CHECKING:
    from orchestrator.events.ports import Configuration, Tenants

_OF_DELIVERIES = frozenset({Kind.CONNECTION_DISABLED, Kind.DELIVERY_EXHAUSTED})


class NoQuotas(Quotas):
    """Berth's own events are not limited by the plan of the operators' tenant: an event that is refused is lost."""

    def __init__(self) -> None:
        super().__init__(monotonic=lambda: 0.0)

    def take(self, _standing: Standing, _at: datetime, *, submission: bool = False) -> OverLimit | None:  # noqa: ARG002
        return None

    def count(self, _standing: Standing, *, submission: bool = False) -> None:
        pass


class OperatorsTenant:
    def __init__(
        self,
        tenant: TenantId,
        *,
        control_plane: str,
        configuration: Configuration,
        tenants: Tenants,
        accepting: Accepting,
    ) -> None:
        self._tenant = tenant
        self._control_plane = control_plane
        self._configuration = configuration
        self._tenants = tenants
        self._accepting = accepting

    def accept(self, events: Sequence[OwnEvent]) -> Sequence[OwnEvent] | None:
        """Accept events of Berth's own. Returns those that are too large, and ``None`` if the tenant accepts no events.

        An event that comes again within 24 hours is the same event: its id is the repetition key.
        """
        wanted = [each for each in events if not self._is_about_its_own_deliveries(each)]
        if not wanted:
            return ()
        settings = self._configuration.settings(self._tenant)
        if settings is None or self._tenants.incarnation(self._tenant) != settings.incarnation:
            return None
        # Usage is not read, because no quota is checked.
        standing = Standing(settings, used=0, month="")
        outcomes = {each.id: self._accepting.accept(standing, self._new(each)) for each in wanted}
        return [each for each in wanted if isinstance(outcomes[each.id], TooLarge)]

    def _is_about_its_own_deliveries(self, event: OwnEvent) -> bool:
        """Such an event would be delivered, fail and make another one, for ever. The bus has it."""
        return event.kind in _OF_DELIVERIES and event.tenant == self._tenant

    def _new(self, event: OwnEvent) -> NewEvent:
        body = json.dumps(event.detail(self._control_plane), sort_keys=True).encode()
        # The next version of Berth may add fields to an event that this one could not write.
        return NewEvent(event.kind.value, Content(body), repetition_key=f"berth-{event.id}", named_by_key=True)
