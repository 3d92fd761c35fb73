"""People's requests to the event plane: they configure connections, resend an event, and replay many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from orchestrator.events.configuring_connections import (
    ConfiguringConnections,
    ConnectionChange,
    DestinationRules,
    NewConnection,
)
from orchestrator.events.delivery.addresses import AddressRules
from orchestrator.events.delivery.records import Connection, DeliveryRef
from orchestrator.events.delivery.replays import ManagingReplays, NewReplay, Replay
from orchestrator.events.delivery.resending import Resending
from orchestrator.events.records import TenantEpoch
from orchestrator.events.refusals import Refused
from tests.fakes.events import OPERATOR, FakeSecrets
from tests.simulation.events.environment import Environment, settings_of

RULES = DestinationRules(AddressRules(), sends_mail=False, by_operator=True)


class Operators:
    """Every request is a call of a function, which may die, be suspended, or find the table busy."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    # Connections

    def connect(self, life: TenantEpoch, connection_id: str, new: NewConnection) -> None:
        configuring = self._configuring(life, connection_id)
        self._ask("connection created", lambda: configuring.create(settings_of(life), new))

    def pause(self, connection: Connection) -> None:
        self._configure("connection paused", connection, ConfiguringConnections.pause)

    def resume(self, connection: Connection) -> None:
        resending = self._resending(connection.life)

        def resume(configuring: ConfiguringConnections, life: TenantEpoch, connection_id: str) -> Connection | Refused:
            resumed = configuring.resume(life, connection_id)
            if isinstance(resumed, Connection):
                resending.wake(resumed)
            return resumed

        self._configure("connection resumed", connection, resume)

    def rotate(self, connection: Connection) -> None:
        self._configure("connection rotated", connection, ConfiguringConnections.rotate)

    def delete(self, connection: Connection) -> None:
        self._configure("connection deleted", connection, ConfiguringConnections.delete)

    def move(self, connection: Connection, address: str) -> None:
        """Somebody has mended the receiver, and it has another address now."""
        change = ConnectionChange(address=address)
        self._configure("connection moved", connection, lambda configuring, *where: configuring.change(*where, change))

    def filter(self, connection: Connection, wanted: Mapping[str, Any]) -> None:
        change = ConnectionChange(filter=wanted)
        what = "connection filtered anew"
        self._configure(what, connection, lambda configuring, *where: configuring.change(*where, change))

    def _configure(
        self, what: str, connection: Connection, change: Callable[[ConfiguringConnections, TenantEpoch, str], object]
    ) -> None:
        configuring = self._configuring(connection.life)
        self._ask(what, lambda: change(configuring, connection.life, connection.connection_id))

    def _configuring(self, life: TenantEpoch, connection_id: str = "") -> ConfiguringConnections:
        return ConfiguringConnections(
            table=self._configuration(life),
            secrets=FakeSecrets,
            rules=RULES,
            clock=self._env.a_clock(),
            make_id=lambda: connection_id,
        )

    # Deliveries

    def resend(self, ref: DeliveryRef) -> None:
        env, resending = self._env, self._resending(ref.life)

        def resent() -> None:
            result = resending.resend(settings_of(ref.life), ref.event_id, ref.connection_id)
            if not isinstance(result, Refused):
                env.seen[f"resend {result[ref.connection_id]}"] += 1

        env.checks.resent.add(ref)
        env.call(resent, lambda _error: None)

    def _resending(self, life: TenantEpoch) -> Resending:
        env = self._env
        return Resending(
            table=env.table_port(),
            connections=self._configuration(life),
            queue=env.queue_port(),
            clock=env.a_clock(),
        )

    # Replays

    def replay(self, life: TenantEpoch, new: NewReplay) -> None:
        managing = self._managing(life)
        self._ask("replay started", lambda: managing.start(settings_of(life), new, OPERATOR))

    def pause_replay(self, replay: Replay) -> None:
        managing = self._managing(replay.life)
        self._ask("replay paused", lambda: managing.pause(replay.life, replay.replay_id))

    def resume_replay(self, replay: Replay) -> None:
        managing = self._managing(replay.life)
        self._ask("replay resumed", lambda: managing.resume(replay.life, replay.replay_id))

    def cancel_replay(self, replay: Replay) -> None:
        managing = self._managing(replay.life)
        self._ask("replay cancelled", lambda: managing.cancel(replay.life, replay.replay_id))

    def _managing(self, life: TenantEpoch) -> ManagingReplays:
        env = self._env
        return ManagingReplays(
            replays=env.replays_port(),
            connections=self._configuration(life),
            origins=env.port("connections", env.connections),
            clock=env.a_clock(),
            make_id=self._replay_id,
        )

    def _replay_id(self, at: datetime) -> str:
        return f"rpl_{int(at.timestamp() * 1000):012x}{self._env.rng.getrandbits(48):012x}"

    def _configuration(self, life: TenantEpoch) -> Any:
        return self._env.port("configuration", self._env.configurations[life])

    def _ask(self, what: str, request: Callable[[], object]) -> None:
        """Whoever asks does not ask again if there is an error."""

        def asked() -> None:
            if not isinstance(request(), Refused):
                self._env.seen[what] += 1

        self._env.call(asked, lambda _error: None)
