"""The rows that transitions of deliveries write, as data: see :mod:`orchestrator.common.writes`.

- The row of an event has the fields ``status``, ``pending``, ``deliveries`` (with ``deliveries.{connection}`` for one
  entry), ``delivered_at``, ``retry_count`` and ``indexed_as``, the status under which it is listed.
- The row of a delivery has one field, ``delivery``, the whole record, and in conditions its ``revision``.
- The row of an attempt has one field, ``attempt``, the whole record.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.common.writes import Check, Delete, Put, Update
from orchestrator.events.delivery.records import DeliveryRef
from orchestrator.events.records import TenantEpoch


@dataclass(frozen=True, slots=True)
class EventKey:
    life: TenantEpoch
    event_id: str


@dataclass(frozen=True, slots=True)
class DeliveryKey:
    ref: DeliveryRef


@dataclass(frozen=True, slots=True)
class AttemptKey:
    ref: DeliveryRef
    number: int


Key = EventKey | DeliveryKey | AttemptKey
DeliveryWrite = Put[Key] | Update[Key] | Delete[Key] | Check[Key]
