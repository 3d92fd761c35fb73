"""Connections of a tenant: create, list, change, pause, resume, rotate, delete."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.events.configuring import ROUNDS, unsettled
from orchestrator.events.delivery.addresses import AddressRules
from orchestrator.events.delivery.filters import check_filter
from orchestrator.events.delivery.mail_addresses import is_mail_address
from orchestrator.events.delivery.records import (
    API_ORIGIN,
    Connection,
    ConnectionStatus,
    Destination,
    DestinationKind,
    Health,
)
from orchestrator.events.delivery.retries import RetrySchedule
from orchestrator.events.delivery.signing import ROTATION_OVERLAP, new_signing_secret, secret_context
from orchestrator.events.delivery.transforms import check_transform
from orchestrator.events.ports import ConfigurationTable, Secrets
from orchestrator.events.records import EventSettings, TenantEpoch
from orchestrator.events.refusals import EventRefusal, Refused
from orchestrator.events.resource_ids import IdPrefix, is_resource_id, new_resource_id

MAX_PER_ORIGIN = 20
MAX_PER_TENANT = 100
_MAX_WITH_DELETED = 2
"""With those that are deleted and still drain, there are at most this many times as many connections."""

MAX_DOCUMENT_BYTES = 8_192
"""The size of a filter or a transform, as JSON."""
_MAX_DEPTH = 32
ZAPIER_HOSTS = frozenset({"hooks.zapier.com"})

OWN_QUEUE = Destination(DestinationKind.QUEUE)
_NOT_ENDED = (ConnectionStatus.ACTIVE, ConnectionStatus.PAUSED)

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewConnection:
    name: str
    destination: Destination = OWN_QUEUE
    origin: str = API_ORIGIN
    filter: Document | None = None
    transform: Document | None = None
    retry: RetrySchedule = field(default_factory=RetrySchedule)


@dataclass(frozen=True, slots=True)
class ConnectionChange:
    """The fields of a connection to change. ``None`` leaves a field as it is; an empty document removes it."""

    name: str | None = None
    address: str | None = None
    filter: Document | None = None
    transform: Document | None = None
    retry: RetrySchedule | None = None

    def of(self, connection: Connection) -> Connection:
        kind, address = connection.destination.kind, self.address
        return replace(
            connection,
            name=connection.name if self.name is None else self.name,
            destination=connection.destination if address is None else Destination(kind, address),
            filter=connection.filter if self.filter is None else self.filter or None,
            transform=connection.transform if self.transform is None else self.transform or None,
            retry=self.retry or connection.retry,
        )


@dataclass(frozen=True, slots=True)
class IssuedSecret:
    """A connection, and the secret that its deliveries are signed with."""

    connection: Connection
    secret: str | None = field(default=None, repr=False)
    """``None`` if the deliveries are not signed. The secret cannot be shown again."""


@dataclass(frozen=True, slots=True)
class DestinationRules:
    """Which destinations this caller may choose."""

    addresses: AddressRules
    sends_mail: bool
    """True if Berth has an address to send mail from."""
    by_operator: bool
    """True if an operator asks. Only operators confirm addresses of mail, and resume mail that Berth has stopped."""

    def checked(self, destination: Destination, tenant: TenantId) -> Destination:
        """The destination as it is kept. Raises :class:`InvalidRequest` if nothing may be sent there.

        A host is not resolved here: deliveries check its addresses at each try.
        """
        kind, address = destination.kind, destination.address
        match kind:
            case DestinationKind.QUEUE:
                if address:
                    raise InvalidRequest("address: the tenant's own queue has none. Leave it out.")
                return destination
            case DestinationKind.EMAIL:
                return Destination(kind, self._mail_address(address, tenant))
        if not address:
            raise InvalidRequest(f"address: a connection to a {kind} needs the URL that events are sent to.")
        target = self.addresses.parse(address)
        if kind is DestinationKind.ZAPIER and target.host not in ZAPIER_HOSTS:
            raise InvalidRequest(f"address: the URL of a Zap begins with https://{min(ZAPIER_HOSTS)}/.")
        return Destination(kind, target.url)

    def refusal_to_put_back(self, before: Connection, after: Connection) -> Refused | None:
        """Why this caller may not resume or pause a connection that Berth has disabled.

        A connection that sends mail is disabled because mail came back for good, or because a receiver complained.
        Restoring a connection confirms its address again, so the rule is that of choosing an address.
        """
        is_put_back = before.status is ConnectionStatus.DISABLED and after.status in _NOT_ENDED
        if self.by_operator or not is_put_back or before.destination.kind is not DestinationKind.EMAIL:
            return None
        tenant = before.life.tenant
        return Refused(
            EventRefusal.CONNECTION_DISABLED,
            tenant,
            f"Berth has disabled the connection {before.connection_id} of tenant {tenant}, which sends mail. An "
            "operator has to confirm that the address works and that its owner wants the mail. Ask one to resume it: "
            f"berth connections resume {tenant} {before.connection_id}",
        )

    def _mail_address(self, address: str, tenant: TenantId) -> str:
        if not self.sends_mail:
            raise InvalidRequest(
                "destination: Berth sends no mail here. An operator can deploy it with berth:eventsMailFrom, the "
                "address that mail comes from."
            )
        if not self.by_operator:
            raise InvalidRequest(
                "destination: mail is sent only to addresses whose owner has agreed, and an operator has to confirm "
                f"that. Ask one to create the connection: berth connections create {tenant} --email ADDRESS"
            )
        if not is_mail_address(address):
            raise InvalidRequest("address: it is not an address of mail, such as ada@example.com.")
        return address


def _new_connection_id() -> str:
    return new_resource_id(IdPrefix.CONNECTION)


class ConfiguringConnections:
    def __init__(
        self,
        *,
        table: ConfigurationTable,
        secrets: Callable[[], Secrets],
        rules: DestinationRules,
        clock: Clock,
        make_id: Callable[[], str] = _new_connection_id,
    ) -> None:
        self._table = table
        self._secrets = secrets
        self._rules = rules
        self._clock = clock
        self._make_id = make_id

    def list(self, life: TenantEpoch) -> Sequence[Connection]:
        return [each for each in self._table.connections(life) if _is_shown(each)]

    def find(self, life: TenantEpoch, connection_id: str) -> Connection | Refused:
        connection = self._table.connection(life, connection_id)
        if connection is None or not _is_shown(connection):
            return Refused(
                EventRefusal.NO_SUCH_CONNECTION,
                life.tenant,
                f"Tenant {life.tenant} has no connection {connection_id}. List its connections to see their ids.",
            )
        return connection

    def create(self, settings: EventSettings, new: NewConnection) -> IssuedSecret | Refused:
        issued = self._made(settings, new)
        return self._add(settings, issued)

    def subscribe(self, settings: EventSettings, url: str, event_type: str | None) -> IssuedSecret | Refused:
        """Connect a Zap. If a connection with the same URL and type exists, that one is returned."""
        new = NewConnection(
            name=f"Zapier: {event_type or 'all events'}"[:100],
            destination=Destination(DestinationKind.ZAPIER, url),
            filter={"event_type": event_type} if event_type else None,
        )
        return self._add(settings, self._made(settings, new), unless_there=True)

    def unsubscribe(self, life: TenantEpoch, connection_id: str) -> Connection | Refused | None:
        """Delete the connection of a Zap; ``None`` if there is no such connection, so that there was nothing to do."""
        found = self.find(life, connection_id)
        if isinstance(found, Refused):
            return None
        if found.destination.kind is not DestinationKind.ZAPIER:
            return Refused(
                EventRefusal.NO_SUCH_CONNECTION,
                life.tenant,
                f"The connection {connection_id} of tenant {life.tenant} is not a subscription of Zapier.",
            )
        return self.delete(life, connection_id)

    def change(self, life: TenantEpoch, connection_id: str, change: ConnectionChange) -> Connection | Refused:
        """Change the connection. Nothing is written if it is already as requested."""

        def changed(connection: Connection) -> Connection:
            after = change.of(connection)
            _check_documents(
                after.filter if after.filter != connection.filter else None,
                after.transform if after.transform != connection.transform else None,
            )
            # A destination that stays was checked for the caller who chose it.
            return after if change.address is None else _begun_anew(self._with_destination(after))

        return self._change(life, connection_id, changed)

    def pause(self, life: TenantEpoch, connection_id: str) -> Connection | Refused:
        """Deliveries are parked from now on, also those that would have ended because the connection was disabled."""

        def paused(connection: Connection) -> Connection:
            if connection.status is ConnectionStatus.PAUSED:
                return connection
            enabled = self._enabled(connection)
            return replace(enabled, status=ConnectionStatus.PAUSED, reason=None, draining=False, found_empty_at=None)

        return self._change(life, connection_id, paused)

    def resume(self, life: TenantEpoch, connection_id: str) -> Connection | Refused:
        """Parked deliveries go out, and the connection begins anew, as if no delivery had ever failed.

        An active connection is put into the sweep's list again, too: somebody may have mended the connection's row by
        hand, and forgotten the list.
        """

        def resumed(connection: Connection) -> Connection:
            enabled = self._enabled(connection)
            active = replace(enabled, status=ConnectionStatus.ACTIVE, reason=None, health=Health(), draining=True)
            return active if active == connection else replace(active, found_empty_at=None)

        return self._change(life, connection_id, resumed)

    def rotate(self, life: TenantEpoch, connection_id: str) -> IssuedSecret | Refused:
        """A new signing secret. For 24 hours deliveries carry the signature of the former one, too."""
        made = new_signing_secret()
        encrypted: list[bytes] = []

        def rotated(connection: Connection) -> Connection | Refused:
            if connection.secret is None:
                return Refused(
                    EventRefusal.NOT_SIGNED,
                    life.tenant,
                    f"The connection {connection_id} of tenant {life.tenant} has no secret, because what it sends to "
                    f"a {connection.destination.kind} is not signed. Only webhooks are signed.",
                )
            if not encrypted:
                encrypted.append(self._encrypted(connection, made))
            return replace(
                connection,
                secret=encrypted[0],
                former_secret=connection.secret,
                former_secret_until=self._clock.now() + ROTATION_OVERLAP,
            )

        changed = self._change(life, connection_id, rotated)
        return changed if isinstance(changed, Refused) else IssuedSecret(changed, made)

    def delete(self, life: TenantEpoch, connection_id: str) -> Connection | Refused:
        """Its unfinished deliveries fail. The row stays until there are none."""

        def deleted(connection: Connection) -> Connection:
            return replace(
                connection,
                status=ConnectionStatus.DELETED,
                secret=None,
                former_secret=None,
                former_secret_until=None,
                health=replace(connection.health, open_until=None),
                draining=True,
                found_empty_at=None,
            )

        return self._change(life, connection_id, deleted)

    def _change(
        self, life: TenantEpoch, connection_id: str, change: Callable[[Connection], Connection | Refused]
    ) -> Connection | Refused:
        for _ in range(ROUNDS):
            connection = self.find(life, connection_id)
            if isinstance(connection, Refused):
                return connection
            changed = change(connection)
            if isinstance(changed, Refused) or changed == connection:
                return changed
            if refused := self._rules.refusal_to_put_back(connection, changed):
                return refused
            changed = replace(changed, revision=connection.revision + 1)
            if self._table.change_connection(connection, changed):
                return changed
        raise unsettled(life.tenant)

    def _enabled(self, connection: Connection) -> Connection:
        """Records the time at which a disabled connection is enabled: reports about earlier mails do not count."""
        is_disabled = connection.status is ConnectionStatus.DISABLED
        return replace(connection, enabled_at=self._clock.now()) if is_disabled else connection

    def _made(self, settings: EventSettings, new: NewConnection) -> IssuedSecret:
        connection = self._with_destination(
            Connection(
                life=settings.life,
                connection_id=self._make_id(),
                origin=new.origin,
                name=new.name,
                destination=new.destination,
                status=ConnectionStatus.ACTIVE,
                created_at=self._clock.now(),
                filter=new.filter or None,
                transform=new.transform or None,
                retry=new.retry,
            )
        )
        _check_documents(connection.filter, connection.transform)
        if new.destination.kind is not DestinationKind.WEBHOOK:
            return IssuedSecret(connection)
        made = new_signing_secret()
        return IssuedSecret(replace(connection, secret=self._encrypted(connection, made)), made)

    def _add(
        self, settings: EventSettings, issued: IssuedSecret, *, unless_there: bool = False
    ) -> IssuedSecret | Refused:
        life, tenant, connection = settings.life, settings.life.tenant, issued.connection
        for _ in range(ROUNDS):
            # Read before everything else: adding a connection or deleting its source after this read makes the
            # write fail.
            current = self._table.settings(tenant)
            if current is None or current.life != life:
                raise unsettled(tenant)
            if refused := self._unknown_origin(life, connection.origin):
                return refused
            there = self._table.connections(life)
            if unless_there and (same := _same(there, connection)):
                return IssuedSecret(same)
            if refused := _limit_reached(there, connection):
                return refused
            if self._table.add_connection(connection, current):
                return issued
        raise unsettled(tenant)

    def _unknown_origin(self, life: TenantEpoch, origin: str) -> Refused | None:
        if origin == API_ORIGIN:
            return None
        is_form = is_resource_id(IdPrefix.FORM, origin)
        there = self._table.form(origin) if is_form else self._table.source(origin)
        if there is not None and there.life == life:
            return None
        kind = EventRefusal.NO_SUCH_FORM if is_form else EventRefusal.NO_SUCH_SOURCE
        word = "form" if is_form else "source"
        return Refused(
            kind, life.tenant, f"Tenant {life.tenant} has no {word} {origin}. List its {word}s to see their ids."
        )

    def _with_destination(self, connection: Connection) -> Connection:
        destination = self._rules.checked(connection.destination, connection.life.tenant)
        return replace(connection, destination=destination)

    def _encrypted(self, connection: Connection, secret: str) -> bytes:
        return self._secrets().encrypt(secret.encode(), connection.life, secret_context(connection.connection_id))


def refusal_to_delete(table: ConfigurationTable, life: TenantEpoch, origin: str) -> Refused | None:
    """Why a source or a form cannot be deleted: deliveries of its events would lose their connections."""
    connections = [each for each in table.connections(life) if each.origin == origin and _is_shown(each)]
    if not connections:
        return None
    listed = ", ".join(each.connection_id for each in connections)
    return Refused(
        EventRefusal.HAS_CONNECTIONS,
        life.tenant,
        f"Events of {origin} of tenant {life.tenant} are sent to other places by its connections. Delete them first: "
        f"{listed}.",
    )


def _is_shown(connection: Connection) -> bool:
    return connection.status is not ConnectionStatus.DELETED


def _same(there: Sequence[Connection], wanted: Connection) -> Connection | None:
    def names(connection: Connection) -> tuple[object, ...]:
        return connection.origin, connection.destination, connection.filter

    return next((each for each in there if _is_shown(each) and names(each) == names(wanted)), None)


def _limit_reached(there: Sequence[Connection], new: Connection) -> Refused | None:
    tenant = new.life.tenant
    of_origin = [each for each in there if each.origin == new.origin]
    for connections, limit, whose in (
        (of_origin, MAX_PER_ORIGIN, f"{new.origin} of tenant {tenant}"),
        (there, MAX_PER_TENANT, f"Tenant {tenant}"),
    ):
        if (count := len([each for each in connections if _is_shown(each)])) >= limit:
            return Refused(
                EventRefusal.LIMIT_REACHED,
                tenant,
                f"{whose} has {count} connections, and {limit} is the limit. Delete a connection that nobody uses, "
                "and try again.",
            )
        if len(connections) >= limit * _MAX_WITH_DELETED:
            return Refused(
                EventRefusal.LIMIT_REACHED,
                tenant,
                f"{whose} has too many connections that were just deleted: their deliveries are still being ended. "
                "Try again in five minutes.",
            )
    return None


def _begun_anew(connection: Connection) -> Connection:
    """The connection as if no delivery had ever failed. Deliveries that the breaker has parked go out."""
    if connection.health.opened == 0:
        return replace(connection, health=Health())
    return replace(connection, health=Health(), draining=True, found_empty_at=None)


def _check_documents(new_filter: Document | None, new_transform: Document | None) -> None:
    """Documents that stay are not checked: an earlier version of Berth may have accepted more of them."""
    if new_filter is not None:
        _check_size("filter", new_filter)
        check_filter(new_filter)
    if new_transform is not None:
        _check_size("transform", new_transform)
        check_transform(new_transform)


def _check_size(name: str, document: Document) -> None:
    if _is_deeper(document, _MAX_DEPTH):
        raise InvalidRequest(f"{name}: it is nested more than {_MAX_DEPTH} levels deep.")
    try:
        size = len(json.dumps(document))
    except ValueError:
        raise InvalidRequest(f"{name}: it has a number that is too long.") from None
    if size > MAX_DOCUMENT_BYTES:
        raise InvalidRequest(f"{name}: it is larger than {MAX_DOCUMENT_BYTES} bytes.")


def _is_deeper(document: object, levels: int) -> bool:
    if levels == 0:
        return isinstance(document, dict | list)
    inside: Sequence[object] = ()
    if isinstance(document, dict):
        inside = [*document.values()]
    elif isinstance(document, list):
        inside = document
    return any(_is_deeper(each, levels - 1) for each in inside)
