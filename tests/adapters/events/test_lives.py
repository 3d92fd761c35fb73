"""A tenant that is deleted and created again inherits nothing, whatever is going on in the meantime."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from orchestrator.events.authorising import Standing
from orchestrator.events.event_ids import IdRange
from orchestrator.events.purging import MoreToPurge, Purged
from orchestrator.events.records import EventSettings
from tests.adapters.events.lives import LARGE, SMALL, Lives
from tests.fakes import ACME
from tests.fakes.events import INCARNATION, NEXT_INCARNATION
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

SEEDS = 12
ACTIONS = 60

ONCE = replace(SMALL, repetition_key="order-1")


def seen_by(lives: Lives, settings: EventSettings) -> list[str]:
    """Every event id that the tenant can list, by time, status, and type."""
    reads, anything = lives.reads, IdRange()
    found: set[str] = set()
    for shard in range(settings.shards):
        for submissions in (False, True):
            events, _ = reads.by_time(settings.life, shard, anything, 1000, submissions=submissions)
            found |= {event.event_id for event in events}
        found |= set(reads.by_status(settings.life, "undelivered", shard, anything, 1000, newest_first=False)[0])
        found |= set(reads.by_type(settings.life, "order.created", shard, anything, 1000)[0])
    return sorted(found)


def test_deleted_and_created_again_in_the_middle_of_everything(lives: Lives) -> None:
    # The first life: keys in use, events, marks, usage, a source and a form.
    old = lives.settings(inbox=True, type_index=True)
    key, source, form = lives.key(old), lives.source(old), lives.form(old)
    remembered = present(lives.granted(key))
    first = lives.accept(remembered, ONCE)
    events = [lives.accept(remembered, each) for each in [SMALL, LARGE, replace(SMALL, source_id=source)] * 10]
    events.append(lives.accept(remembered, replace(SMALL, form_id=form)))
    unread = lives.stream(old.life, first, *events[:10])
    lives.count(unread)
    lives.wait(timedelta(hours=1, minutes=6))
    remembered = present(lives.granted(key))
    lives.bill()

    # The tenant is deleted. An instance that remembers its grant still accepts, for at most 10 seconds.
    lives.delete()
    lives.accept(present(lives.granted(key)), LARGE)
    assert lives.granted(key, lives.new_instance()) is None

    # The purge begins, and is interrupted half-way.
    assert lives.finding.find(ACME).started == [old.life]
    assert isinstance(lives.step(old.life, pages=1), MoreToPurge)

    # The tenant is created again, with a source of its own, while the purge is at work.
    lives.create(NEXT_INCARNATION)
    new = lives.settings(inbox=True, type_index=True)
    assert new.life.epoch != old.life.epoch
    new_key, new_source = lives.key(new), lives.source(new)
    standing = present(lives.granted(new_key))
    assert (standing.used, seen_by(lives, new)) == (0, [])
    assert [each.source_id for each in lives.table.sources(new.life)] == [new_source]
    assert list(lives.table.forms(new.life)) == []
    assert len(lives.table.api_keys(new.life)) == 1

    # The old mark means nothing to the successor: the same repetition key is a new event.
    second = lives.accept(standing, ONCE)
    assert second != first
    mine = [second, lives.accept(standing, LARGE)]

    # The predecessor's key, source and form stop within 10 seconds; the last late event comes in.
    lives.accept(present(lives.granted(key)), SMALL)
    lives.wait(timedelta(seconds=10))
    assert lives.granted(key) is None
    assert lives.authorising.source(source) is None
    assert lives.authorising.form(form) is None

    # The stream reports the predecessor's events late, and again.
    assert lives.count(unread).events == 0
    lives.count(lives.stream(new.life, *mine))

    # In the end nothing of the predecessor is left, and the successor has all that is its own.
    own = lives.traces(new.life.epoch)
    lives.purge(old.life)
    assert lives.traces(old.life.epoch) == []
    assert lives.traces(new.life.epoch) == own
    assert seen_by(lives, new) == sorted(mine)
    assert lives.reporting.of_month(new).counted == 2
    assert lives.granted(new_key, lives.new_instance())
    assert lives.finding.find().started == []


# Random sequences


@dataclass
class Life:
    settings: EventSettings
    keys: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    grants: list[Standing] = field(default_factory=list)
    """The grants that running functions have. A function runs for 30 seconds at most, so they go after a minute."""


class Sequence:
    """Random actions, in any order. A function that has a grant may use it until its timeout."""

    def __init__(self, lives: Lives, seed: int) -> None:
        self.lives = lives
        self.random = random.Random(seed)
        self.past: list[Life] = []
        self.present: Life | None = None
        self.number = 0

    def run(self) -> None:
        actions = [self.settle, self.delete_and_create, self.authorise, self.accept, self.accept, self.accept_late]
        actions += [self.count, self.bill, self.find, self.purge_a_little, self.purge_a_little, self.wait]
        for _ in range(ACTIONS):
            self.random.choice(actions)()
            self.check()
        self.finish()

    def settle(self) -> None:
        settings = self.lives.settings(inbox=True, type_index=True)
        if self.present is None:
            self.present = Life(settings)
        self.present.settings = settings
        self.present.keys.append(self.lives.key(settings))
        self.random.choice([self.lives.source, self.lives.form])(settings)

    def delete_and_create(self) -> None:
        self.lives.delete()
        if self.random.random() < 0.5:
            self.find()
        if self.present:
            self.past.append(self.present)
            self.present = None
        self.number += 1
        self.lives.create(f"{INCARNATION} again {self.number}")

    def authorise(self) -> None:
        if self.present and self.present.keys:
            standing = self.lives.granted(self.random.choice(self.present.keys), self.lives.new_instance())
            self.present.grants.append(present(standing))

    def accept(self) -> None:
        if self.present and self.present.grants:
            self._accept(self.present)

    def accept_late(self) -> None:
        """A function of a predecessor writes, although the tenant has ended."""
        late = [life for life in self.past if life.grants]
        if late:
            self._accept(self.random.choice(late))

    def _accept(self, life: Life) -> None:
        event = self.random.choice([SMALL, LARGE, replace(SMALL, repetition_key=str(self.random.randrange(3)))])
        event_id = self.lives.accept(self.random.choice(life.grants), event)
        if event_id not in life.events:
            life.events.append(event_id)

    def count(self) -> None:
        lives = [life for life in [*self.past, self.present] if life and life.events]
        if lives:
            life = self.random.choice(lives)
            self.lives.count(self.lives.stream(life.settings.life, *self.random.sample(life.events, 1)))

    def bill(self) -> None:
        self.lives.bill()

    def find(self) -> None:
        self.lives.finding.find()

    def purge_a_little(self) -> None:
        purges = list(self.lives.purges.open_purges())
        if purges:
            self.lives.step(self.random.choice(purges).life, pages=self.random.choice([1, 2, 1000]))

    def wait(self) -> None:
        duration = self.random.choice([timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=20)])
        self.lives.wait(duration)
        if duration > timedelta(seconds=30):
            for life in [*self.past, *([self.present] if self.present else [])]:
                life.grants.clear()

    def check(self) -> None:
        """The successor sees its own events and nothing else, and no key of a predecessor works."""
        if self.present:
            assert seen_by(self.lives, self.present.settings) == sorted(self.present.events)
            assert len(self.lives.table.api_keys(self.present.settings.life)) == len(self.present.keys)
        instance = self.lives.new_instance()
        for life in self.past:
            assert not any(self.lives.granted(key, instance) for key in life.keys)
            purge = self.lives.purges.purge(life.settings.life)
            if purge and purge.finished_at:
                assert self.lives.traces(life.settings.life.epoch) == []

    def finish(self) -> None:
        self.lives.wait(timedelta(minutes=1))
        self.lives.finding.find()
        for purge in list(self.lives.purges.open_purges()):
            self.lives.purge(purge.life)
        for life in self.past:
            assert self.lives.traces(life.settings.life.epoch) == []
            assert self.lives.step(life.settings.life) == Purged()
        self.check()


@pytest.mark.parametrize("number", range(SEEDS))
def test_any_order_of_actions(events_table: DynamoDBClient, bucket: S3Client, number: int) -> None:
    # The seed is new in every run. The name of a failed test has only the number, so the message has the seed.
    seed = random.SystemRandom().randrange(2**32)
    try:
        Sequence(Lives(events_table, bucket), seed).run()
    except Exception as error:
        raise AssertionError(f"With the seed {seed}: {error}") from error
    assert number >= 0
