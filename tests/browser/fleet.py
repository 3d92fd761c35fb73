"""A fleet in memory, in all states: what the tests of the console look at, and what the screenshots show."""

from __future__ import annotations

import threading
from datetime import timedelta

from orchestrator.api.requesting import HttpRequest
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Queue, RootCause
from tests.fakes import NEXT_VERSION, VERSION
from tests.unit.cli.fake_api import InMemoryApi

READY_AT_NEXT = ("acme", "globex", "initech", "umbrella", "hooli", "stark", "wayne", "wonka", "tyrell", "cyberdyne")
READY_AT_FIRST = ("aperture", "blackmesa", "dunder", "gringotts", "monarch", "oscorp", "soylent", "vandelay")
FAILED = ("duff", "krusty")
UPDATE_FAILED = ("nakatomi",)
PROVISIONING = ("pawnee",)
UPDATING = ("massive",)
DELETING = ("prestige",)
DELETED = ("enron",)
QUEUE_LIMIT = RootCause(
    "InboundQueue",
    "AWS::SQS::Queue",
    "Resource handler returned message: Access to the resource https://sqs.eu-west-1.amazonaws.com/ is denied.",
)


class FleetApi(InMemoryApi):
    """The API in memory, for the several threads of a console."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.Lock()
        self.away: ApiAnswer | None = None
        """The answer to every request, instead of the API's own."""

    def send(self, request: HttpRequest) -> ApiAnswer:
        with self._turn:
            return self.away or super().send(request)

    # Steps in which a fleet is made

    def begin(self) -> None:
        run = self.run
        self.table.begin(run, at=self.clock.now(), release=self.table.release(run.attempt.version))

    def has(self, name: str, version: str = VERSION, **labels: str) -> TenantId:
        """A tenant that is ready at this release."""
        tenant = TenantId.parse(name)
        assert self.create(tenant, pin=version, labels=labels, reason="signed up").status == 202
        self.begin()
        self.succeed(queue_of(tenant))
        self.create(tenant, unpin=True)
        return tenant


def queue_of(tenant: TenantId) -> Queue:
    name = f"BerthTenant-{tenant}-InboundQueue"
    return Queue(
        f"arn:aws:sqs:eu-west-1:000000000000:{name}", f"https://sqs.eu-west-1.amazonaws.com/000000000000/{name}"
    )


def a_fleet() -> FleetApi:
    """Tenants in every state."""
    api = FleetApi()
    for number, name in enumerate(READY_AT_NEXT):
        api.has(name, NEXT_VERSION, plan="gold" if number % 3 == 0 else "free")
        api.clock.advance(timedelta(minutes=7))
    for number, name in enumerate(READY_AT_FIRST):
        api.has(name, VERSION, plan="free" if number % 2 else "gold")
        api.clock.advance(timedelta(minutes=5))
    for name in FAILED:
        assert api.create(TenantId.parse(name), labels={"plan": "free"}).status == 202
        api.begin()
        api.fail(QUEUE_LIMIT)
    for name in UPDATE_FAILED:
        tenant = api.has(name, VERSION, plan="gold")
        assert api.upgrade(tenant).status == 202
        api.begin()
        api.fail(QUEUE_LIMIT)
    for name in DELETED:
        tenant = api.has(name)
        assert api.delete(tenant, reason="the contract has ended").status == 202
        api.begin()
        api.succeed()
    for name in DELETING:
        assert api.delete(api.has(name)).status == 202
        api.begin()
    for name in UPDATING:
        assert api.upgrade(api.has(name)).status == 202
        api.begin()
    for name in PROVISIONING:
        assert api.create(TenantId.parse(name), labels={"plan": "free"}).status == 202
        api.begin()
    api.pin(TenantId.parse("vandelay"), VERSION)
    api.clock.advance(timedelta(seconds=40))
    api.asked.clear()
    return api
