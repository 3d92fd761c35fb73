"""Webhooks and submissions of forms: verified, accepted once, and kept as they came; on DynamoDB and S3, by moto."""

from __future__ import annotations

import hmac
import json
import os
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.adapters.dynamodb.event_configuration_writes import DynamoConfigurationTable
from orchestrator.adapters.dynamodb.event_keys import CHANGES_PREFIX, event_key
from orchestrator.adapters.dynamodb.event_rows import event_from
from orchestrator.adapters.dynamodb.events import DynamoEventWrites
from orchestrator.adapters.event_contents import S3Contents
from orchestrator.common.errors import InvalidRequest
from orchestrator.events.accepting import Accepted, Accepting, TooLarge
from orchestrator.events.authorising import Authorising
from orchestrator.events.challenges import LISTENING, Challenge
from orchestrator.events.changes import Recorder
from orchestrator.events.configuring import Configuring, SettingsChange
from orchestrator.events.configuring_forms import ConfiguringForms, FormChange
from orchestrator.events.configuring_sources import ConfiguringSources, CreatedSource, NewSource
from orchestrator.events.content import MAX_BODY_BYTES, Packed, unpack
from orchestrator.events.forms import FormQuotas, WrongContentType
from orchestrator.events.hops import TooManyHops
from orchestrator.events.incoming import Incoming
from orchestrator.events.plans import MAX_BATCH, Plan
from orchestrator.events.quotas import OverLimit, Quotas
from orchestrator.events.receiving import (
    Decided,
    NoSuchAddress,
    OriginNotAllowed,
    Paused,
    ReceivedSubmission,
    Receiving,
    SubmissionResult,
    Trapped,
    WebhookResult,
    WrongMethod,
)
from orchestrator.events.records import Event, EventSettings, Form, Provider, Source, SourceStatus
from orchestrator.events.signatures import Unverified
from tests.adapters.conftest import TABLE
from tests.adapters.events.conftest import BUCKET, EVENTS_TABLE
from tests.fakes import ACME, FakeClock
from tests.fakes.events import NEXT_INCARNATION, OPERATOR, FakeKeyUse, FakeSecrets, FakeTenants, FakeUsage, Watch

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

SECRET = "correct horse battery"
PUSH = b'{"ref": "refs/heads/main"}'
PAGE = "https://www.example.com"


@dataclass
class World:
    """The use case, with a source of GitHub and a form of the tenant acme."""

    dynamodb: DynamoDBClient
    s3: S3Client
    clock: FakeClock = field(default_factory=FakeClock)
    watch: Watch = field(default_factory=Watch)
    tenants: FakeTenants = field(default_factory=FakeTenants)
    secrets: FakeSecrets = field(default_factory=FakeSecrets)

    def __post_init__(self) -> None:
        table = DynamoConfigurationTable(
            self.dynamodb, TABLE, events_table=EVENTS_TABLE, recorder=Recorder(OPERATOR, self.clock)
        )
        self.settings = Configuring(table=table, tenants=self.tenants, clock=self.clock)
        self.sources = ConfiguringSources(table=table, secrets=lambda: self.secrets, clock=self.clock)
        self.forms = ConfiguringForms(table=table, clock=self.clock)
        authorising = Authorising(
            configuration=table,
            tenants=self.tenants,
            usage=FakeUsage(),
            key_use=FakeKeyUse(),
            clock=self.clock,
            monotonic=self.watch,
        )
        accepting = Accepting(
            events=DynamoEventWrites(self.dynamodb, EVENTS_TABLE),
            contents=S3Contents(lambda: self.s3, BUCKET),
            quotas=Quotas(monotonic=self.watch),
            clock=self.clock,
        )
        self.receiving = Receiving(
            authorising=authorising,
            accepting=accepting,
            secrets=lambda: self.secrets,
            form_quotas=FormQuotas(monotonic=self.watch),
            clock=self.clock,
        )
        changed = self.settings.change_settings(ACME, SettingsChange(plan=Plan.PRO))
        assert isinstance(changed, EventSettings)
        self.of_acme = changed

    def source(self, provider: Provider = Provider.GITHUB, secret: str | None = SECRET, **verification: str) -> Source:
        created = self.sources.create(self.of_acme, NewSource("shop", provider, secret, verification))
        assert isinstance(created, CreatedSource)
        return created.source

    def form(self, **options: Any) -> Form:
        form = self.forms.create(self.of_acme, "contact", FormChange(**options))
        assert isinstance(form, Form)
        return form

    def hook(self, source: Source, incoming: Incoming) -> WebhookResult:
        return self.receiving.webhook(source.source_id, incoming).result

    def submit(self, form: Form, incoming: Incoming) -> SubmissionResult:
        return self.receiving.submission(form.form_id, incoming).result

    def rows(self) -> list[dict[str, Any]]:
        """All rows but the record of changes of the configuration."""
        rows = self.dynamodb.scan(TableName=EVENTS_TABLE)["Items"]
        return [row for row in rows if not row["pk"]["S"].startswith(CHANGES_PREFIX)]

    def event(self, result: WebhookResult | SubmissionResult) -> Event:
        event_id = accepted(result).event_id
        key = event_key(self.of_acme.life, event_id)
        return event_from(self.dynamodb.get_item(TableName=EVENTS_TABLE, Key=key, ConsistentRead=True)["Item"])

    def forget(self) -> None:
        """Let the time pass for which the function remembers what it has read."""
        self.watch.seconds += 10


@pytest.fixture
def world(events_table: DynamoDBClient, bucket: S3Client) -> World:
    return World(events_table, bucket)


def accepted(result: object) -> Accepted:
    assert isinstance(result, Decided)
    assert isinstance(result.outcome, Accepted)
    return result.outcome


def by_github(body: bytes = PUSH, *, secret: str = SECRET, delivery: str = "72d3162e", **headers: str) -> Incoming:
    signature = hmac.digest(secret.encode(), body, "sha256").hex()
    given = {
        "x-hub-signature-256": f"sha256={signature}",
        "x-github-delivery": delivery,
        "x-github-event": "push",
        "content-type": "application/json",
        "user-agent": "GitHub-Hookshot/044aadd",
        "authorization": "Basic c2VjcmV0",
        "x-forwarded-for": "192.0.2.7",
    }
    return Incoming(
        "POST", given | {name.replace("_", "-"): value for name, value in headers.items()}, body, "192.0.2.7"
    )


def by_page(body: bytes = b"name=Ada", origin: str | None = None, **headers: str) -> Incoming:
    given = {"content-type": "application/x-www-form-urlencoded"} | ({"origin": origin} if origin else {})
    return Incoming(
        "POST", given | {name.replace("_", "-"): value for name, value in headers.items()}, body, "192.0.2.8"
    )


# Webhooks


def test_a_verified_webhook_is_kept_byte_for_byte_with_its_headers(world: World) -> None:
    source = world.source()
    event = world.event(world.hook(source, by_github()))
    assert event.content is not None
    assert event.content.body == PUSH
    assert set(event.content.headers) == {"x-hub-signature-256", "x-github-delivery", "x-github-event", "user-agent"}
    assert (event.event_type, event.source_id, event.form_id) == ("push", source.source_id, None)
    assert (event.method, event.content_type, event.source_ip) == ("POST", "application/json", "192.0.2.7")
    assert event.metadata == {}


@pytest.mark.parametrize("body", [b"", b"\x00\xff\xfe", bytes(range(256)) * 40, "\u20ac".encode("utf-16")])
def test_any_bytes_come_back_as_they_were_signed(world: World, body: bytes) -> None:
    event = world.event(world.hook(world.source(), by_github(body)))
    content = event.content
    if event.content_key:
        stored = world.s3.get_object(Bucket=BUCKET, Key=event.content_key)["Body"].read()
        content = unpack(Packed(stored, event.packing))
    assert content is not None
    assert content.body == body


def test_a_wrong_signature_is_refused_and_nothing_is_written(world: World) -> None:
    source = world.source()
    assert isinstance(world.hook(source, by_github(secret="another secret")), Unverified)
    assert world.rows() == []


def test_repeats_of_a_delivery_are_one_event_even_if_bytes_of_it_changed(world: World) -> None:
    source = world.source()
    first, again = (accepted(world.hook(source, by_github(body))) for body in (PUSH, b'{"ref": "changed"}'))
    assert (first.repeated, again.repeated) == (False, True)
    assert again.event_id == first.event_id
    event = world.event(world.hook(source, by_github()))
    assert event.content is not None
    assert event.content.body == PUSH
    assert len([row for row in world.rows() if row["pk"]["S"].startswith("TENANT_ID#")]) == 1


def test_a_repeat_does_not_change_the_bytes_of_a_large_event(world: World) -> None:
    """The repeat may even be packed in another way, since one content can be compressed and another cannot."""
    source = world.source()
    body, changed = os.urandom(9_000), b"x" * 100_000 + os.urandom(9_000)
    event = world.event(world.hook(source, by_github(body)))
    assert accepted(world.hook(source, by_github(changed))).repeated
    assert event.content_key is not None
    stored = world.s3.get_object(Bucket=BUCKET, Key=event.content_key)["Body"].read()
    assert unpack(Packed(stored, event.packing)).body == body


def test_another_delivery_and_the_same_delivery_of_another_source_are_events_of_their_own(world: World) -> None:
    first, second = world.source(), world.source()
    results = [
        world.hook(first, by_github()),
        world.hook(first, by_github(delivery="another")),
        world.hook(second, by_github()),
    ]
    assert len({accepted(result).event_id for result in results}) == 3


def test_a_refused_webhook_does_not_take_the_delivery_id_from_the_real_one(world: World) -> None:
    source = world.source()
    assert isinstance(world.hook(source, by_github(b"forged", secret="another secret")), Unverified)
    assert not accepted(world.hook(source, by_github())).repeated


def test_githubs_ping_is_answered_and_not_kept(world: World) -> None:
    result = world.hook(world.source(), by_github(x_github_event="ping"))
    assert isinstance(result, Challenge)
    assert world.rows() == []


def test_a_challenge_is_answered_only_if_it_is_signed(world: World) -> None:
    forged = by_github(secret="another secret", x_github_event="ping")
    assert isinstance(world.hook(world.source(), forged), Unverified)


def test_slacks_challenge_is_echoed_and_not_kept(world: World) -> None:
    body = json.dumps({"type": "url_verification", "challenge": "3eZb", "token": "t"}).encode()
    seconds = str(int(world.clock.now().timestamp()))
    digest = hmac.digest(SECRET.encode(), b"v0:%b:%b" % (seconds.encode(), body), "sha256").hex()
    headers = {
        "content-type": "application/json",
        "x-slack-signature": f"v0={digest}",
        "x-slack-request-timestamp": seconds,
    }
    source = world.source(Provider.SLACK)
    result = world.hook(source, Incoming("POST", headers, body))
    assert isinstance(result, Challenge)
    assert result.answer == {"challenge": "3eZb"}
    assert world.rows() == []
    world.clock.advance(timedelta(minutes=6))
    assert isinstance(world.hook(source, Incoming("POST", headers, body)), Unverified)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_look_at_the_address_is_answered_and_not_kept(world: World, method: str) -> None:
    assert world.hook(world.source(), Incoming(method, {}, b"")) == LISTENING
    assert world.rows() == []


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "", "post"])
def test_other_methods_are_refused(world: World, method: str) -> None:
    result = world.hook(world.source(), Incoming(method, by_github().headers, PUSH))
    assert isinstance(result, WrongMethod)
    assert "POST" in result.allowed


def test_the_method_of_a_webhook_is_kept(world: World) -> None:
    sent = by_github()
    event = world.event(world.hook(world.source(), Incoming("PUT", sent.headers, sent.body)))
    assert event.method == "PUT"


def test_a_paused_source_takes_nothing_until_it_is_resumed(world: World) -> None:
    source = world.source()
    world.sources.set_status(source.life, source.source_id, SourceStatus.PAUSED)
    result = world.hook(source, by_github())
    assert result == Paused(f"source {source.source_id}")
    assert world.rows() == []
    world.sources.set_status(source.life, source.source_id, SourceStatus.ACTIVE)
    world.forget()
    accepted(world.hook(source, by_github()))


@pytest.mark.parametrize("source_id", ["", "src_", "src_" + "0" * 24, "form_" + "0" * 24, "x" * 999, "src_1#SOURCE\n"])
def test_an_unknown_source_is_not_found(world: World, source_id: str) -> None:
    assert isinstance(world.receiving.webhook(source_id, by_github()).result, NoSuchAddress)


def test_a_deleted_source_stops_within_ten_seconds(world: World) -> None:
    source = world.source()
    accepted(world.hook(source, by_github()))
    world.sources.delete(source.life, source.source_id)
    world.forget()
    assert isinstance(world.hook(source, by_github()), NoSuchAddress)


@pytest.mark.parametrize("incarnation", [None, NEXT_INCARNATION])
def test_sources_and_forms_of_a_tenant_that_is_gone_or_created_again_stop_within_ten_seconds(
    world: World, incarnation: str | None
) -> None:
    source, form = world.source(), world.form()
    accepted(world.hook(source, by_github()))
    accepted(world.submit(form, by_page()))
    del world.tenants.incarnations[ACME]
    if incarnation:
        world.tenants.incarnations[ACME] = incarnation
        assert isinstance(world.settings.change_settings(ACME, SettingsChange()), EventSettings)
    world.forget()
    assert isinstance(world.hook(source, by_github()), NoSuchAddress)
    assert isinstance(world.submit(form, by_page()), NoSuchAddress)


def test_the_header_with_a_shared_secret_is_not_kept(world: World) -> None:
    source = world.source(Provider.SHARED_SECRET, header="X-Gitlab-Token", event_type_header="X-Gitlab-Event")
    headers = {"x-gitlab-token": SECRET, "x-gitlab-event": "Push Hook"}
    event = world.event(world.hook(source, Incoming("POST", headers, b"{}")))
    assert event.content is not None
    assert event.content.headers == {"x-gitlab-event": "Push Hook"}
    assert event.event_type == "Push_Hook"
    assert SECRET not in str(world.rows())


def test_a_source_without_verification_needs_no_secret(world: World) -> None:
    source = world.source(Provider.NONE, secret=None)
    event = world.event(world.hook(source, Incoming("POST", {}, b"plain")))
    assert (event.event_type, event.content_type) == ("webhook", "application/octet-stream")


def test_the_fifth_hop_is_refused_and_the_hops_before_it_are_kept_with_the_event(world: World) -> None:
    source = world.source()
    assert world.event(world.hook(source, by_github(berth_hops="4"))).metadata == {"hops": "4"}
    assert isinstance(world.hook(source, by_github(delivery="5", berth_hops="5")), TooManyHops)
    assert isinstance(world.submit(world.form(), by_page(berth_hops="5")), TooManyHops)
    with pytest.raises(InvalidRequest, match="Berth-Hops"):
        world.hook(source, by_github(berth_hops="many"))


def test_a_body_that_is_too_large_is_refused(world: World) -> None:
    result = world.hook(world.source(), by_github(b"x" * (MAX_BODY_BYTES + 1)))
    assert isinstance(result, Decided)
    assert isinstance(result.outcome, TooLarge)
    assert world.rows() == []


def test_over_the_plan_is_told(world: World) -> None:
    changed = world.settings.change_settings(ACME, SettingsChange(plan=Plan.FREE))
    assert isinstance(changed, EventSettings)
    source = world.source()
    results = [world.hook(source, by_github(delivery=str(number))) for number in range(MAX_BATCH + 1)]
    *before, last = [result.outcome for result in results if isinstance(result, Decided)]
    assert all(isinstance(outcome, Accepted) for outcome in before)
    assert isinstance(last, OverLimit)
    repeated = world.hook(source, by_github(delivery="0"))
    assert isinstance(repeated, Decided)
    assert isinstance(repeated.outcome, Accepted)
    assert repeated.outcome.repeated


# Forms


def test_a_submission_is_kept_as_an_object_of_fields(world: World) -> None:
    form = world.form()
    event = world.event(world.submit(form, by_page(b"name=Ada&color=red&color=blue")))
    assert event.content is not None
    assert json.loads(event.content.body) == {"name": "Ada", "color": ["red", "blue"]}
    assert (event.event_type, event.form_id, event.source_id) == ("form.submitted", form.form_id, None)
    assert (event.source_ip, event.content_type) == ("192.0.2.8", "application/json")


def test_the_same_submission_twice_is_two_events(world: World) -> None:
    form = world.form()
    assert len({accepted(world.submit(form, by_page())).event_id for _ in range(2)}) == 2


def test_only_pages_of_allowed_origins_may_send(world: World) -> None:
    form = world.form(origins=(PAGE,))
    accepted(world.submit(form, by_page(origin=PAGE)))
    for origin in (None, "null", "https://evil.example"):
        assert isinstance(world.submit(form, by_page(origin=origin)), OriginNotAllowed)
    assert len(world.rows()) == 1


def test_a_honeypot_traps_robots_and_costs_people_nothing(world: World) -> None:
    form = world.form(honeypot="website", submissions_per_minute=1)
    for _ in range(3):
        result = world.submit(form, by_page(b"name=Ada&website=spam"))
        assert isinstance(result, Trapped)
    assert world.rows() == []
    accepted(world.submit(form, by_page()))


def test_a_form_has_a_quota_of_its_own(world: World) -> None:
    form, other = world.form(submissions_per_minute=2), world.form()
    results = [world.submit(form, by_page()) for _ in range(3)]
    assert isinstance(results[2], OverLimit)
    assert results[2].retry_after_seconds == 30
    accepted(world.submit(other, by_page()))
    accepted(world.hook(world.source(), by_github()))
    assert len([row for row in world.rows() if row["sk"]["S"].startswith("SUB#")]) == 3


def test_a_paused_form_and_files_and_other_types_are_refused(world: World) -> None:
    form = world.form()
    assert isinstance(world.submit(form, by_page(content_type="text/plain")), WrongContentType)
    world.forms.change(form.life, form.form_id, FormChange(status=SourceStatus.PAUSED))
    world.forget()
    assert world.submit(form, by_page()) == Paused(f"form {form.form_id}")


@pytest.mark.parametrize("form_id", ["", "form_", "form_" + "0" * 24, "src_" + "0" * 24])
def test_an_unknown_form_is_not_found(world: World, form_id: str) -> None:
    assert world.receiving.submission(form_id, by_page()) == ReceivedSubmission(NoSuchAddress())
    assert world.receiving.form(form_id) is None


def test_a_browser_that_asks_first_is_told_about_the_form(world: World) -> None:
    form = world.form(origins=(PAGE,))
    assert world.receiving.form(form.form_id) == form
