"""Lives of a tenant in the event plane: the use cases on DynamoDB and S3, by moto."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from orchestrator.adapters.dynamodb.event_configuration import DynamoConfiguration
from orchestrator.adapters.dynamodb.event_configuration_writes import DynamoConfigurationTable
from orchestrator.adapters.dynamodb.event_epochs import DynamoEpochs
from orchestrator.adapters.dynamodb.event_keys import CHANGES_PREFIX
from orchestrator.adapters.dynamodb.event_purges import DynamoEventCounts, DynamoPurges, DynamoRemains
from orchestrator.adapters.dynamodb.event_reads import DynamoEventReads
from orchestrator.adapters.dynamodb.event_stream import read_stream
from orchestrator.adapters.dynamodb.event_usage_writes import DynamoUsageWrites
from orchestrator.adapters.dynamodb.events import DynamoEventWrites
from orchestrator.adapters.event_contents import S3Contents
from orchestrator.events.accepting import Accepted, Accepting, NewEvent
from orchestrator.events.authorising import Authorising, Grant, Standing
from orchestrator.events.changes import Recorder
from orchestrator.events.configuring import Configuring, SettingsChange
from orchestrator.events.configuring_connections import (
    ConfiguringConnections,
    DestinationRules,
    IssuedSecret,
    NewConnection,
)
from orchestrator.events.configuring_forms import ConfiguringForms, FormChange
from orchestrator.events.configuring_keys import ConfiguringKeys, IssuedKey
from orchestrator.events.configuring_sources import ConfiguringSources, CreatedSource, NewSource
from orchestrator.events.delivery.addresses import AddressRules
from orchestrator.events.delivery.records import Connection
from orchestrator.events.listing import Listing
from orchestrator.events.plans import Plan
from orchestrator.events.purging import FindingPurges, LookAgain, MoreToPurge, NotToPurge, Purged, Purging
from orchestrator.events.quotas import Quotas
from orchestrator.events.records import Content, EventSettings, Form, Provider, Scope, TenantEpoch
from orchestrator.events.usage import Billing, Counted, Counting, ReportingUsage
from tests.adapters.conftest import TABLE
from tests.fakes import ACME, FakeClock
from tests.fakes.events import OPERATOR, FakePurgeExecutions, FakeSecrets, FakeTenants, Watch

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

EVENTS_TABLE = "berth-events"
BUCKET = "berth-events-contents"
SETTLE = timedelta(minutes=15)
SMALL = NewEvent("order.created", Content(b'{"order": 1}'))
LARGE = NewEvent("order.created", Content(Random(1).randbytes(8000)))
"""Too large for a row, even compressed."""


class Lives:
    """The event plane, with the tenant acme alive."""

    def __init__(self, dynamodb: DynamoDBClient, s3: S3Client) -> None:
        self.dynamodb = dynamodb
        self.s3 = s3
        self.clock = FakeClock()
        self.watch = Watch()
        self.tenants = FakeTenants()
        self.table = DynamoConfigurationTable(
            dynamodb, TABLE, events_table=EVENTS_TABLE, recorder=Recorder(OPERATOR, self.clock)
        )
        self.usage = DynamoUsageWrites(dynamodb, TABLE)
        self.purges = DynamoPurges(dynamodb, TABLE)
        self.epochs = DynamoEpochs(dynamodb, TABLE)
        self.executions = FakePurgeExecutions()
        self.contents = S3Contents(lambda: s3, BUCKET)
        self.reads = DynamoEventReads(dynamodb, EVENTS_TABLE)
        self.listing = Listing(events=self.reads, contents=self.contents, clock=self.clock)
        self.configuring = Configuring(table=self.table, tenants=self.tenants, clock=self.clock)
        self.keys = ConfiguringKeys(table=self.table, clock=self.clock, environment="test")
        self.sources = ConfiguringSources(table=self.table, secrets=FakeSecrets, clock=self.clock)
        self.forms = ConfiguringForms(table=self.table, clock=self.clock)
        self.connections = self.configuring_connections()
        self.authorising = self.new_instance()
        self.accepting = Accepting(
            events=DynamoEventWrites(dynamodb, EVENTS_TABLE),
            contents=self.contents,
            quotas=Quotas(monotonic=self.watch),
            clock=self.clock,
        )
        self.counting = Counting(settings=self.epochs, counts=self.usage, clock=self.clock)
        self.reporting = ReportingUsage(usage=self.usage, billed=self.usage, clock=self.clock)
        self.finding = FindingPurges(
            tenants=self.tenants,
            configuration=self.table,
            settings=self.epochs,
            purges=self.purges,
            executions=self.executions,
            clock=self.clock,
        )

    def configuring_connections(self, **rules: Any) -> ConfiguringConnections:
        """As an operator uses it, where mail is sent."""
        allowed = {"addresses": AddressRules(), "sends_mail": True, "by_operator": True} | rules
        return ConfiguringConnections(
            table=self.table, secrets=FakeSecrets, rules=DestinationRules(**allowed), clock=self.clock
        )

    def new_instance(self) -> Authorising:
        """A function that has just started, and remembers nothing."""
        configuration = DynamoConfiguration(self.dynamodb, TABLE)
        return Authorising(
            configuration=configuration,
            tenants=self.tenants,
            usage=self.usage,
            key_use=configuration,
            clock=self.clock,
            monotonic=self.watch,
        )

    def wait(self, duration: timedelta) -> None:
        self.clock.advance(duration)
        self.watch.seconds += duration.total_seconds()

    # The tenant

    def create(self, incarnation: str) -> None:
        self.tenants.incarnations[ACME] = incarnation

    def delete(self) -> None:
        self.tenants.incarnations.pop(ACME, None)
        self.tenants.withdrawn.discard(ACME)

    def settings(self, **changes: Any) -> EventSettings:
        settings = self.configuring.change_settings(ACME, SettingsChange(**{"plan": Plan.TEAM} | changes))
        assert isinstance(settings, EventSettings)
        return settings

    def key(self, settings: EventSettings) -> str:
        issued = self.keys.create(settings, "a key", frozenset({Scope.ADMIN}))
        assert isinstance(issued, IssuedKey)
        return issued.text

    def source(self, settings: EventSettings) -> str:
        new = NewSource(name="shop", provider=Provider.GITHUB, secret="correct horse")
        created = self.sources.create(settings, new)
        assert isinstance(created, CreatedSource)
        return created.source.source_id

    def form(self, settings: EventSettings) -> str:
        form = self.forms.create(settings, "contact", FormChange())
        assert isinstance(form, Form)
        return form.form_id

    def connection(self, settings: EventSettings, **new: Any) -> Connection:
        created = self.connections.create(settings, NewConnection(**{"name": "orders"} | new))
        assert isinstance(created, IssuedSecret), created
        return created.connection

    # Events

    def granted(self, key: str, instance: Authorising | None = None) -> Standing | None:
        grant = (instance or self.authorising).by_key(key, Scope.WRITE)
        return grant.standing if isinstance(grant, Grant) else None

    def accept(self, standing: Standing, new: NewEvent = SMALL) -> str:
        outcome = self.accepting.accept(standing, new)
        assert isinstance(outcome, Accepted), outcome
        return outcome.event_id

    def stream(self, life: TenantEpoch, *event_ids: str) -> dict[str, Any]:
        """The records of the stream, as Lambda hands them over."""
        rows = [row for row in self.event_rows() if any(row["sk"]["S"].endswith(each) for each in event_ids)]
        assert all(f"#{life.epoch}#" in row["pk"]["S"] for row in rows)
        return {"Records": [record(row["pk"]["S"], row["sk"]["S"]) for row in rows]}

    def count(self, event: object) -> Counted:
        return self.counting.count(list(read_stream(event).events))

    def billing(self) -> Billing:
        return Billing(
            settings=self.epochs,
            events=DynamoEventCounts(self.dynamodb, EVENTS_TABLE),
            usage=self.usage,
            clock=self.clock,
            has_time=lambda: True,
        )

    def bill(self) -> None:
        assert self.billing().run().complete

    # The end

    def step(self, life: TenantEpoch, *, pages: int = 1_000_000) -> MoreToPurge | LookAgain | Purged | NotToPurge:
        """One step of a purge, which has time for so many pages."""
        left = [pages]

        def has_time() -> bool:
            left[0] -= 1
            return left[0] > 0

        return self.purging(has_time).step(life)

    def purging(self, has_time: Any = lambda: True) -> Purging:
        remains = DynamoRemains(self.dynamodb, table=TABLE, events_table=EVENTS_TABLE, contents=self.contents)
        return Purging(
            configuration=self.table,
            purges=self.purges,
            remains=remains,
            clock=self.clock,
            settle=SETTLE,
            has_time=has_time,
        )

    def purge(self, life: TenantEpoch) -> None:
        """All steps of a purge."""
        for _ in range(100):
            match self.step(life):
                case LookAgain(seconds=seconds):
                    self.wait(timedelta(seconds=seconds))
                case Purged():
                    return
        raise AssertionError("The purge does not end.")

    def rows(self) -> list[dict[str, Any]]:
        return self.dynamodb.scan(TableName=TABLE)["Items"]

    def event_rows(self) -> list[dict[str, Any]]:
        return [row for row in self._all_event_rows() if not row["pk"]["S"].startswith(CHANGES_PREFIX)]

    def _all_event_rows(self) -> list[dict[str, Any]]:
        return self.dynamodb.scan(TableName=EVENTS_TABLE)["Items"]

    def objects(self) -> list[str]:
        return [each["Key"] for each in self.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]

    def traces(self, epoch: str) -> list[str]:
        """Everything that mentions an epoch, except the record of its purge and marks, which expire within a day."""
        rows = [
            f"{row['pk']['S']} {row['sk']['S']}"
            for row in [*self.rows(), *self._all_event_rows()]
            if epoch in repr(row) and not row["sk"]["S"].startswith(("PURGE#", "IDEM"))
        ]
        return rows + [key for key in self.objects() if epoch in key]


def record(pk: str, sk: str, name: str = "INSERT") -> dict[str, Any]:
    return {
        "eventName": name,
        "dynamodb": {"Keys": {"pk": {"S": pk}, "sk": {"S": sk}}, "SequenceNumber": "100"},
    }
