"""A seeded run of the event plane: events, changes and faults for a while, then neither, and every delivery ends."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

from orchestrator.events.configuring_connections import NewConnection
from orchestrator.events.delivery.records import (
    API_ORIGIN,
    Connection,
    ConnectionStatus,
    DeliveryRef,
    Destination,
    DestinationKind,
    DispatchedEvent,
    origin_of,
)
from orchestrator.events.delivery.replays import NewReplay, ReplayStatus
from orchestrator.events.delivery.writes import EventKey
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.plans import Plan, time_to_live
from orchestrator.events.records import Content, Event, TenantEpoch
from orchestrator.events.statuses import EventStatus
from tests.fakes import ACME
from tests.simulation.events.ends import Consumers, Purges
from tests.simulation.events.environment import DAY, MINUTE, SHARDS, Environment
from tests.simulation.events.faults import A_FUNCTION_LIVES, Faults, draw_faults
from tests.simulation.events.operators import Operators
from tests.simulation.events.receivers import Behaviour
from tests.simulation.seeded_run import Broken

Choice = TypeVar("Choice")

LIVES = (TenantEpoch(ACME, "5f3a9c01"), TenantEpoch(ACME, "77aa0011"))
"""Two lives of the same tenant: the second inherits nothing."""
SOURCE = "src_" + "a" * 24
ORIGINS = (API_ORIGIN, SOURCE)
TYPES = ("order.created", "order.paid")
BEHAVIOURS = (*Behaviour, *[Behaviour.ABORTS] * 3)
"""Deliveries fail often enough for good, so that replays find some that did."""
LIMIT = timedelta(days=9)
"""Everything ends within the life of an event, which is eight days here, and a day for the nightly run."""
REPLAY = "python -m tests.simulation --events --seed {seed}"


def play_seed(seed: int, faults: Faults | None = None) -> Counter[str]:
    run = SeededEvents(seed, faults)
    run.play()
    return run.env.seen


class SeededEvents:
    def __init__(self, seed: int, faults: Faults | None = None) -> None:
        self.seed = seed
        self._rng = random.Random(seed)
        self.env = Environment(self._rng, faults or draw_faults(self._rng), LIVES, [SOURCE])
        self._operators = Operators(self.env)
        self._consumers = Consumers(self.env)
        self._purges = Purges(self.env)
        self._inbox = self._rng.random() < 0.4
        self._number = 0

    def play(self) -> None:
        try:
            self._act()
            self._settle()
            self.env.checks.check_end()
        except AssertionError as broken:
            replay = REPLAY.format(seed=self.seed)
            raise Broken(f"seed {self.seed}: {broken}\nTo replay: {replay}") from broken
        finally:
            self.env.close()

    def _act(self) -> None:
        env, rng = self.env, self._rng
        for _ in range(rng.randrange(1, 4)):
            self._connect()
        actions = [
            *[self._accept] * 8,
            *[self._accept_many] * 2,
            self._connect,
            *[self._pause] * 2,
            *[self._resume] * 2,
            self._delete,
            *[self._acknowledge] * 2,
            *[self._change_receiver] * 2,
            *[self._resend] * 3,
            *[self._rotate_or_move] * 2,
            *[self._replay] * rng.choice((1, 2, 12)),
            *[self._change_replay] * 2,
        ]
        lasts = timedelta(seconds=rng.choice((30, 600, 7_200, 200_000)))
        end = env.clock.now() + lasts
        for _ in range(rng.randrange(3, 30)):
            env.later(lasts * rng.random(), rng.choice(actions))
        if rng.random() < 0.3:
            env.later(lasts * rng.random(), self._purge)
        nightly = env.clock.now() + timedelta(hours=rng.randrange(24))
        # With numbers of its own, so that the runs without it stay as they are.
        damages = random.Random(f"damaged rows of {self.seed}")
        if damages.random() < 0.2:
            for _ in range(3):
                env.later(lasts * damages.random(), lambda: self._damage(damages))
        configures = random.Random(f"configuration of {self.seed}")
        if configures.random() < 0.3:
            for _ in range(4):
                env.later(lasts * configures.random(), lambda: self._change_filter(configures))
            env.later(lasts * configures.random(), self._switch_inbox)
        while env.clock.now() < end:
            env.later(timedelta(), env.sweep)
            step = MINUTE if lasts < timedelta(hours=3) else timedelta(minutes=30)
            env.run_until(min(env.clock.now() + step, end))
            if env.clock.now() >= nightly:
                env.redispatch()
                nightly += DAY

    def _settle(self) -> None:
        """No more faults. Most connections and replays are resumed, and what was accepted has to end."""
        env = self.env
        # The last action may be a little late, and a function may still be at work for it.
        env.run_until(env.clock.now() + A_FUNCTION_LIVES + timedelta(seconds=1))
        env.end_faults()
        env.damaged.clear()
        for connection_id, behaviour in list(env.receivers.behaviours.items()):
            if behaviour is not Behaviour.FAILS or self._rng.random() < 0.5:
                env.receivers.behaviours[connection_id] = Behaviour.WORKS
        for connection in list(env.connections.all.values()):
            if connection.status is ConnectionStatus.PAUSED and self._rng.random() < 0.8:
                self._operators.resume(connection)
        for replay in list(env.replays.all.values()):
            if replay.status is ReplayStatus.PAUSED and self._rng.random() < 0.8:
                self._operators.resume_replay(replay)
        env.checks.works = {
            each.connection_id
            for each in env.connections.all.values()
            if each.status is ConnectionStatus.ACTIVE
            and env.receivers.behaviours.get(each.connection_id, Behaviour.WORKS) is Behaviour.WORKS
        }
        began, nightly = env.clock.now(), env.clock.now() + timedelta(hours=2)
        minutes = 0
        while env.clock.now() < began + LIMIT:
            if env.clock.now() >= nightly:
                env.redispatch()
                nightly = env.clock.now() + DAY
            env.sweep()
            minutes += 1
            # Every minute at first, then more seldom, so that a run of nine days ends soon.
            env.run_until(env.clock.now() + (MINUTE if minutes < 15 else timedelta(minutes=20)))
            has_lasted = env.clock.now() > began + timedelta(days=1)
            if has_lasted and env.checks.everything_is_settled() and self._purges.are_finished:
                break

    def _mostly(self, choices: Sequence[Choice]) -> Choice:
        """Mostly the first, so that events and connections meet."""
        return self._rng.choice((choices[0], *choices))

    # Actions

    def _accept(self, life: TenantEpoch | None = None, origin: str | None = None, *, late: bool = False) -> None:
        env, rng = self.env, self._rng
        life, origin = life or self._mostly(LIVES), origin or self._mostly(ORIGINS)
        if life in env.checks.purged and not late:
            return
        at = env.clock.now()
        event = Event(
            life=life,
            event_id=new_event_id(at, rng.randrange(SHARDS), random_bits=rng.getrandbits),
            status=EventStatus.RECEIVED,
            event_type=rng.choice(TYPES),
            content=Content(b"{}"),
            expires_at=at + time_to_live(Plan.STARTER),
            source_id=None if origin == API_ORIGIN else origin,
            in_inbox=self._inbox,
        )
        env.accept(DispatchedEvent(event))
        if self._inbox and rng.random() < 0.3:
            self._take_at_once(event)
        elif self._inbox and rng.random() < 0.5:
            # A consumer reads the inbox while connections are at work on the event.
            soon = timedelta(seconds=rng.choice((0.1, 1, 2, 5, 30)))
            env.later(soon, lambda: self._consumers.acknowledge(life, [event.event_id]))

    def _accept_many(self) -> None:
        """Several events of one origin come at once, and meet in the same partitions."""
        life, origin = self._mostly(LIVES), self._mostly(ORIGINS)
        for _ in range(self._rng.randrange(2, 6)):
            self._accept(life, origin)

    def _connect(self) -> None:
        env, rng = self.env, self._rng
        self._number += 1
        life = self._mostly(LIVES)
        if life in env.checks.purged:
            return
        new = NewConnection(
            name="receiver",
            destination=Destination(DestinationKind.WEBHOOK, "https://receiver.example"),
            origin=self._mostly(ORIGINS),
            filter=rng.choice((None, None, {"event_type": TYPES[0]})),
        )
        connection_id = f"conn_{self._number:024x}"
        if rng.random() < 0.3:
            env.receivers.behaviours[connection_id] = rng.choice(BEHAVIOURS)
        self._operators.connect(life, connection_id, new)
        if rng.random() < 0.3:
            # A new connection is often to have older events, too.
            env.later(timedelta(seconds=rng.choice((1, 30, 600))), lambda: self._replay(connection_id))

    def _a_connection(self) -> Connection | None:
        there = list(self.env.connections.all.values())
        return self._rng.choice(there) if there else None

    def _pause(self) -> None:
        """Often an event comes, and the connection is resumed while messages about it are still on their way."""
        connection = self._a_connection()
        if connection is None:
            return
        self._operators.pause(connection)
        if self._rng.random() < 0.7:
            self._accept(connection.life, connection.origin)
            soon = timedelta(seconds=self._rng.choice((10, 60, 300)))
            self.env.later(soon, lambda: self._resume(connection.connection_id))

    def _resume(self, connection_id: str | None = None) -> None:
        there = self._a_connection()
        connection = self.env.connections.all.get(connection_id) if connection_id else there
        if connection is not None:
            self._operators.resume(connection)

    def _delete(self) -> None:
        if connection := self._a_connection():
            self._operators.delete(connection)

    def _rotate_or_move(self) -> None:
        if connection := self._a_connection():
            if self._rng.random() < 0.5:
                self._operators.rotate(connection)
            else:
                self._operators.move(connection, f"https://receiver.example/{self._rng.randrange(3)}")

    def _change_filter(self, rng: random.Random) -> None:
        there = list(self.env.connections.all.values())
        if there:
            self._operators.filter(rng.choice(there), rng.choice(({}, *({"event_type": each} for each in TYPES))))

    def _switch_inbox(self) -> None:
        """The tenant's next events go to the inbox if the last ones did not."""
        self._inbox = not self._inbox
        self.env.seen["inbox switched"] += 1

    def _damage(self, rng: random.Random) -> None:
        """Somebody other than Berth writes the row of a connection, and later mends it."""
        there = list(self.env.connections.all)
        if there:
            connection_id = rng.choice(there)
            self.env.damaged.add(connection_id)
            self.env.seen["row damaged"] += 1
            mended_after = timedelta(seconds=rng.choice((10, 600, 7_200)))
            self.env.later(mended_after, lambda: self.env.damaged.discard(connection_id))

    def _change_receiver(self) -> None:
        if connection := self._a_connection():
            self.env.receivers.behaviours[connection.connection_id] = self._rng.choice(BEHAVIOURS)

    def _acknowledge(self) -> None:
        env = self.env
        waiting = [key for key, row in env.table.rows.items() if isinstance(key, EventKey) and "indexed_as" in row]
        if waiting:
            key = self._rng.choice(waiting)
            event = env.table.event(key.life, key.event_id)
            assert event is not None
            if event.event.in_inbox:
                self._consumers.acknowledge(key.life, [key.event_id])

    def _resend(self) -> None:
        """Somebody asks for an event again, often for the last one: it may not be dispatched, or not be tried yet."""
        env, rng = self.env, self._rng
        events = list(env.table.events)
        connection = self._a_connection()
        if events and connection:
            event = rng.choice((events[-1], rng.choice(events)))
            if event.life == connection.life:
                self._operators.resend(DeliveryRef(event.life, event.event_id, connection.connection_id))

    def _replay(self, connection_id: str | None = None) -> None:
        """Somebody asks for the events of a time again, for one connection or for all of its origin."""
        env, rng = self.env, self._rng
        there = self._a_connection_with_events()
        connection = env.connections.all.get(connection_id) if connection_id else there
        if connection is None:
            return
        now = env.clock.now()
        since = now - timedelta(seconds=rng.choice((30, 7_200, 300_000, 300_000)))
        until = since + (now - since) * rng.random() if rng.random() < 0.2 else None
        is_one = rng.random() < 0.6
        chosen = rng.choice(("nothing", "nothing", "include_delivered", "only_failed"))
        new = NewReplay(
            since,
            until,
            connection_id=connection.connection_id if is_one else None,
            origin=None if is_one else connection.origin,
            include_delivered=chosen == "include_delivered",
            only_failed=chosen == "only_failed",
        )
        self._operators.replay(connection.life, new)
        if rng.random() < 0.5:
            env.later(timedelta(seconds=rng.choice((0, 5, 60, 120))), self._change_replay)

    def _a_connection_with_events(self) -> Connection | None:
        env = self.env
        origins = {(key.life, origin_of(event)) for key, event in env.table.events.items() if key in env.table.rows}
        there = [each for each in env.connections.all.values() if (each.life, each.origin) in origins]
        return self._rng.choice(there) if there else None

    def _change_replay(self) -> None:
        """A replay is paused, resumed or cancelled, often while the sweep moves it on."""
        replays = [each for each in self.env.replays.all.values() if not each.status.has_ended]
        if replays:
            operators = self._operators
            changes = (
                operators.pause_replay,
                operators.resume_replay,
                operators.resume_replay,
                operators.cancel_replay,
            )
            self._rng.choice(changes)(self._rng.choice(replays))

    def _take_at_once(self, event: Event) -> None:
        """A consumer is quicker than the stream: it acknowledges the event, and asks for it at a connection, too."""
        env = self.env
        connections = env.connections.of_origin(event.life, origin_of(event))
        self._consumers.acknowledge(event.life, [event.event_id])
        for connection in connections:
            self._operators.resend(DeliveryRef(event.life, event.event_id, connection.connection_id))

    def _purge(self) -> None:
        """A life of the tenant ends: its rows go, whatever is on its way."""
        env, life = self.env, self._mostly(LIVES)
        if life in env.checks.purged:
            return
        if self._rng.random() < 0.5:
            # A function that has seen that the tenant was alive may still accept an event.
            late = timedelta(seconds=self._rng.uniform(0, A_FUNCTION_LIVES.total_seconds()))
            env.later(late, lambda: self._accept(life, late=True))
        env.checks.purged.add(life)
        self._purges.end(life)
