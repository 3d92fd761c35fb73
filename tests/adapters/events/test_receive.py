"""The function `receive`, with events as API Gateway sends them, on AWS in process."""

from __future__ import annotations

import base64
import hmac
import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters import aws, event_ports
from orchestrator.adapters.dynamodb.event_configuration import DynamoConfiguration
from orchestrator.adapters.dynamodb.event_keys import CHANGES_PREFIX, event_key
from orchestrator.adapters.dynamodb.event_rows import event_from
from orchestrator.adapters.dynamodb.events import DynamoEventWrites
from orchestrator.common.callers import digest_of
from orchestrator.common.errors import Throttled
from orchestrator.events.configuring import SettingsChange
from orchestrator.events.configuring_forms import FormChange
from orchestrator.events.configuring_sources import CreatedSource, NewSource
from orchestrator.events.plans import MAX_BATCH, Plan
from orchestrator.events.records import Event, EventSettings, Form, Provider, Source, SourceStatus
from tests.adapters.conftest import TABLE, client
from tests.adapters.events.conftest import BUCKET, EVENTS_TABLE
from tests.adapters.handlers.functions import PROOF, emitter, session
from tests.fakes import ACME, FakeClock
from tests.fakes.events import FakeTenants, Watch
from tests.functions import forget_functions

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

SECRET = "It's a Secret to Everybody"
BODY = b"Hello, World!"
SIGNATURE = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
PAGE = "https://www.example.com"

Answer = tuple[int, dict[str, str], Any]


@dataclass
class Receive:
    """The function, freshly loaded, with the tenant acme and every request to AWS that the function makes."""

    dynamodb: DynamoDBClient
    clock: FakeClock
    watch: Watch
    use_cases: Any
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = self.use_cases.configuring("a test").change_settings(ACME, SettingsChange(plan=Plan.PRO))
        assert isinstance(settings, EventSettings)
        self.settings = settings

    def source(self, provider: Provider = Provider.GITHUB, secret: str | None = SECRET, **verification: str) -> Source:
        new = NewSource("shop", provider, secret, verification)
        created = self.use_cases.configuring_sources("a test").create(self.settings, new)
        assert isinstance(created, CreatedSource)
        return created.source

    def form(self, **options: Any) -> Form:
        form = self.use_cases.configuring_forms("a test").create(self.settings, "contact", FormChange(**options))
        assert isinstance(form, Form)
        return form

    def call(self, event: object) -> Answer:
        self.requests.clear()
        result = importlib.import_module("lambdas.events.receive").handler(event, None)
        return result["statusCode"], result["headers"], json.loads(result["body"]) if result["body"] else None

    def event(self, event_id: str) -> Event:
        key = event_key(self.settings.life, event_id)
        return event_from(self.dynamodb.get_item(TableName=EVENTS_TABLE, Key=key)["Item"])

    @property
    def rows(self) -> int:
        rows = self.dynamodb.scan(TableName=EVENTS_TABLE)["Items"]
        return sum(not row["pk"]["S"].startswith(CHANGES_PREFIX) for row in rows)

    def note(self, model: Any, **_: object) -> None:
        self.requests.append(f"{model.service_model.service_name}.{model.name}")


@pytest.fixture
def receive(
    events_table: DynamoDBClient,
    bucket: S3Client,  # noqa: ARG001 - for large contents
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Receive]:
    environment = {
        "BERTH_TABLE": TABLE,
        "BERTH_EVENTS_TABLE": EVENTS_TABLE,
        "BERTH_CONTENTS_BUCKET": BUCKET,
        "BERTH_SECRETS_KEY": client("kms").create_key()["KeyMetadata"]["Arn"],
        "BERTH_EVENTS_ENVIRONMENT": "test",
        "BERTH_API_PROOF_DIGEST": digest_of(PROOF),
        "BERTH_METRICS_NAMESPACE": "Berth",
        "AWS_LAMBDA_LOG_LEVEL": "INFO",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    clock, watch = FakeClock(), Watch()
    monkeypatch.setattr(aws, "_session", session)
    monkeypatch.setattr(event_ports, "SystemClock", lambda: clock)
    forget_functions()
    use_cases = importlib.import_module("lambdas.event_runtime").use_cases
    vars(use_cases.ports).update(monotonic=watch, tenants=FakeTenants())
    receive = Receive(events_table, clock, watch, use_cases)
    emitter().register("provide-client-params", receive.note)
    vars(use_cases.ports).pop("_dynamodb", None)
    yield receive
    emitter().unregister("provide-client-params", receive.note)
    forget_functions()


def api_gateway_event(
    route: str, name: str, value: str, body: bytes | str | None, headers: dict[str, str], method: str
) -> dict[str, Any]:
    """An event in API Gateway's format 2.0. Only text of some content types comes as text."""
    path = route.partition(" ")[2].replace(f"{{{name}}}", value)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": "",
        "cookies": ["session=abc"],
        "headers": {
            "accept": "*/*",
            "content-length": "13",
            "host": "abcdefgh.execute-api.eu-west-1.amazonaws.com",
            "x-amzn-trace-id": "Root=1-5f84c7a5-0e5b1e1f0e5b1e1f0e5b1e1f",
            "x-forwarded-for": "192.0.2.7",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
            **headers,
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abcdefgh",
            "domainName": "abcdefgh.execute-api.eu-west-1.amazonaws.com",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.7",
                "userAgent": "GitHub-Hookshot/044aadd",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": route,
            "stage": "$default",
            "time": "16/Nov/2026:12:00:00 +0000",
            "timeEpoch": 1794830400000,
        },
        "pathParameters": {name: value},
        "stageVariables": {"proof": PROOF},
        "isBase64Encoded": isinstance(body, bytes),
    }
    if body is not None:
        event["body"] = base64.b64encode(body).decode() if isinstance(body, bytes) else body
    return event


def to_hook(
    source: Source | str,
    body: bytes | str | None = BODY,
    *,
    method: str = "POST",
    signature: str = SIGNATURE,
    **headers: str,
) -> dict[str, Any]:
    source_id = source if isinstance(source, str) else source.source_id
    given = {
        "content-type": "application/octet-stream",
        "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "x-github-event": "push",
        "x-hub-signature-256": signature,
        "authorization": "Basic dXNlcjpwYXNzd29yZA==",
    }
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    return api_gateway_event("ANY /hooks/{sourceId}", "sourceId", source_id, body, given, method)


def to_form(
    form: Form | str, body: bytes | str | None = b"name=Ada", *, method: str = "POST", **headers: str
) -> dict[str, Any]:
    form_id = form if isinstance(form, str) else form.form_id
    given = {"content-type": "application/x-www-form-urlencoded"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    return api_gateway_event(f"{method} /forms/{{formId}}", "formId", form_id, body, given, method)


def is_problem(answer: Answer, status: int, kind: str) -> bool:
    assert (answer[0], answer[2]["status"]) == (status, status)
    assert answer[1]["Content-Type"] == "application/problem+json"
    return bool(answer[2]["type"] == f"urn:berth:problem:{kind}" and answer[2]["detail"])


# Webhooks


@pytest.mark.parametrize("body", [BODY, BODY.decode()], ids=["base64", "text"])
def test_githubs_own_example_is_accepted_and_kept_byte_for_byte(receive: Receive, body: bytes | str) -> None:
    status, headers, answer = receive.call(to_hook(receive.source(), body))
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert (answer["status"], answer["repeated"]) == ("undelivered", False)
    event = receive.event(answer["event_id"])
    assert event.content is not None
    assert event.content.body == BODY
    assert (event.event_type, event.method, event.source_ip) == ("push", "POST", "192.0.2.7")
    assert set(event.content.headers) == {"accept", "x-github-delivery", "x-github-event", "x-hub-signature-256"}


def test_a_repeat_is_told_so(receive: Receive) -> None:
    source = receive.source()
    first, again = (receive.call(to_hook(source))[2] for _ in range(2))
    assert again == {**first, "repeated": True}


def test_a_warm_function_writes_the_mark_and_the_event_and_reads_nothing(receive: Receive) -> None:
    source = receive.source()
    receive.call(to_hook(source))
    assert sorted(receive.requests) == [*["dynamodb.GetItem"] * 3, *["dynamodb.PutItem"] * 2, "kms.Decrypt"]
    receive.call(to_hook(source, x_github_delivery="another"))
    assert receive.requests == ["dynamodb.PutItem"] * 2
    receive.watch.seconds += 10
    receive.call(to_hook(source, x_github_delivery="a third"))
    assert sorted(receive.requests) == [*["dynamodb.GetItem"] * 3, *["dynamodb.PutItem"] * 2]


@pytest.mark.parametrize("signature", ["", "sha256=", SIGNATURE[:-1] + "8", SIGNATURE.upper(), "\xe9", "\u20ac"])
def test_a_bad_signature_is_a_401_and_nothing_is_written(receive: Receive, signature: str) -> None:
    assert is_problem(receive.call(to_hook(receive.source(), signature=signature)), 401, "invalid-signature")
    assert receive.rows == 0


def test_an_unknown_source_is_a_404(receive: Receive) -> None:
    for source_id in ("src_" + "0" * 24, "x", "", "../tenants", "\ud800"):
        assert is_problem(receive.call(to_hook(source_id)), 404, "unknown-source")


def test_a_paused_source_is_a_409(receive: Receive) -> None:
    source = receive.source()
    receive.use_cases.configuring_sources("a test").set_status(source.life, source.source_id, SourceStatus.PAUSED)
    assert is_problem(receive.call(to_hook(source)), 409, "source-paused")


def test_a_body_that_is_too_large_is_a_413(receive: Receive) -> None:
    for body in (b"x" * 262_145, "x" * 262_145, "\u20ac" * 90_000):
        assert is_problem(receive.call(to_hook(receive.source(), body)), 413, "too-large")


def test_over_the_plan_is_a_429_that_says_when_to_come_back(receive: Receive) -> None:
    receive.use_cases.configuring("a test").change_settings(ACME, SettingsChange(plan=Plan.FREE))
    source = receive.source(Provider.NONE, None)
    answers = [receive.call(to_hook(source)) for _ in range(MAX_BATCH + 1)]
    assert [status for status, _, _ in answers[:-1]] == [200] * MAX_BATCH
    assert is_problem(answers[-1], 429, "over-plan")
    assert int(answers[-1][1]["Retry-After"]) >= 1


def test_the_fifth_hop_and_other_methods_are_refused(receive: Receive) -> None:
    source = receive.source()
    assert is_problem(receive.call(to_hook(source, berth_hops="5")), 409, "too-many-hops")
    assert is_problem(receive.call(to_hook(source, berth_hops="x")), 400, "invalid-request")
    assert is_problem(receive.call(to_hook(source, method="OPTIONS")), 405, "method-not-allowed")


def test_slacks_challenge_is_answered(receive: Receive) -> None:
    body = b'{"token":"t","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}'
    seconds = str(int(receive.clock.now().timestamp()))
    digest = hmac.digest(SECRET.encode(), b"v0:%b:%b" % (seconds.encode(), body), "sha256").hex()
    headers = {"x_slack_signature": f"v0={digest}", "x_slack_request_timestamp": seconds}
    event = to_hook(receive.source(Provider.SLACK), body.decode(), content_type="application/json", **headers)
    status, sent, answer = receive.call(event)
    assert (status, sent["Content-Type"]) == (200, "application/json")
    assert answer == {"challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}
    assert receive.rows == 0


def test_githubs_ping_and_a_look_at_the_address_are_answered(receive: Receive) -> None:
    source = receive.source()
    assert receive.call(to_hook(source, x_github_event="ping"))[2] == {"status": "pong"}
    assert receive.call(to_hook(source, None, method="GET"))[2] == {"status": "listening"}
    assert receive.rows == 0


# Forms


def test_a_form_of_a_page_is_accepted_and_the_page_sent_on(receive: Receive) -> None:
    form = receive.form(origins=(PAGE,), redirect_url=f"{PAGE}/thanks", honeypot="website")
    status, headers, answer = receive.call(to_form(form, b"name=Ada&website=", origin=PAGE))
    assert (status, headers["Location"]) == (303, f"{PAGE}/thanks")
    assert (headers["Access-Control-Allow-Origin"], headers["Vary"]) == (PAGE, "Origin")
    event = receive.event(answer["event_id"])
    assert event.content is not None
    assert json.loads(event.content.body) == {"name": "Ada"}
    assert (event.form_id, event.event_type) == (form.form_id, "form.submitted")


def test_json_of_a_script_is_accepted_and_answered(receive: Receive) -> None:
    form = receive.form(origins=(PAGE,), redirect_url=f"{PAGE}/thanks")
    event = to_form(form, '{"name": "Ada"}', origin=PAGE, content_type="application/json")
    status, headers, answer = receive.call(event)
    assert status == 202
    assert "Location" not in headers
    assert receive.event(answer["event_id"]).content is not None


def test_a_trapped_submission_looks_accepted_and_is_counted(
    receive: Receive, capsys: pytest.CaptureFixture[str]
) -> None:
    form = receive.form(honeypot="website")
    trapped, accepted = (receive.call(to_form(form, b"name=Ada&website=" + text)) for text in (b"spam", b""))
    assert trapped[:2] == accepted[:2]
    assert set(trapped[2]) == set(accepted[2])
    assert receive.rows == 1
    assert '"TrappedSubmissions"' in capsys.readouterr().out


@pytest.mark.parametrize(("origin", "status"), [(PAGE, 204), ("https://evil.example", 403), ("null", 403), (None, 403)])
def test_a_browser_that_asks_first_is_answered(receive: Receive, origin: str | None, status: int) -> None:
    form = receive.form(origins=(PAGE,))
    asked = {"access_control_request_method": "POST", "access_control_request_headers": "content-type"}
    event = to_form(form, None, method="OPTIONS", **asked, **({"origin": origin} if origin else {}))
    answered, headers, _ = receive.call(event)
    assert answered == status
    assert headers.get("Access-Control-Allow-Origin") == (PAGE if status == 204 else None)
    assert headers["Vary"] == "Origin"
    assert ("Access-Control-Allow-Methods" in headers) == (status == 204)
    assert receive.rows == 0


def test_a_form_without_origins_may_be_sent_from_everywhere(receive: Receive) -> None:
    form = receive.form()
    for method in ("OPTIONS", "POST"):
        _, headers, _ = receive.call(to_form(form, method=method, origin="https://anywhere.example"))
        assert headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"name=%FF", "application/x-www-form-urlencoded", 400),
        (b"<name>", "application/xml", 415),
        (b"x" * 262_145, "application/x-www-form-urlencoded", 413),
    ],
)
def test_a_page_can_read_why_its_form_was_refused(
    receive: Receive, body: bytes, content_type: str, status: int
) -> None:
    form = receive.form(origins=(PAGE,))
    answered, headers, problem = receive.call(to_form(form, body, origin=PAGE, content_type=content_type))
    assert (answered, problem["status"]) == (status, status)
    assert headers["Access-Control-Allow-Origin"] == PAGE
    assert receive.rows == 0


def test_another_page_is_a_403_and_an_unknown_form_a_404(receive: Receive) -> None:
    form = receive.form(origins=(PAGE,))
    assert is_problem(receive.call(to_form(form, origin="https://evil.example")), 403, "origin-not-allowed")
    assert is_problem(receive.call(to_form("form_" + "0" * 24)), 404, "unknown-source")
    assert is_problem(receive.call(to_form("form_" + "0" * 24, None, method="OPTIONS")), 404, "unknown-source")


def test_a_stranger_who_guesses_an_address_costs_one_read_and_one_who_makes_it_up_none(receive: Receive) -> None:
    for guessed in (
        to_hook("src_" + "0" * 24),
        to_form("form_" + "0" * 24),
        to_form("form_" + "0" * 24, None, method="OPTIONS"),
    ):
        receive.call(guessed)
        assert receive.requests == ["dynamodb.GetItem"]
    for made_up in (to_hook("src_1"), to_form("form_1")):
        receive.call(made_up)
        assert receive.requests == []


def test_the_forms_own_limit_is_a_429(receive: Receive) -> None:
    form = receive.form(submissions_per_minute=1)
    assert receive.call(to_form(form))[0] == 202
    answer = receive.call(to_form(form))
    assert is_problem(answer, 429, "too-many-submissions")
    assert answer[1]["Retry-After"] == "60"


# Both


def test_only_api_gateway_may_call(receive: Receive) -> None:
    event = to_hook(receive.source())
    for forged in ({**event, "stageVariables": {"proof": "guessed"}}, {**event, "stageVariables": None}, None, []):
        assert is_problem(receive.call(forged), 403, "not-through-the-api")
    assert receive.rows == 0


def test_a_throttled_table_is_told_as_try_again(receive: Receive) -> None:
    source = receive.source()

    def throttled(**_: object) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, "PutItem")

    emitter().register("before-call.dynamodb.PutItem", throttled)
    try:
        vars(receive.use_cases.ports).pop("_dynamodb", None)
        answer = receive.call(to_hook(source))
    finally:
        emitter().unregister("before-call.dynamodb.PutItem", throttled)
    assert is_problem(answer, 503, "try-again")


def test_a_submission_that_is_kept_is_answered_so_also_if_the_table_is_throttled_from_then_on(
    receive: Receive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the page would send it again."""
    form, put = receive.form(origins=(PAGE,)), DynamoEventWrites.put

    def throttled(*_: object) -> None:
        raise Throttled("GetItem: slow down")

    def put_and_wait(writes: DynamoEventWrites, *given: Any, **more: Any) -> None:
        put(writes, *given, **more)
        receive.watch.seconds += 10
        monkeypatch.setattr(DynamoConfiguration, "_get", throttled)

    monkeypatch.setattr(DynamoEventWrites, "put", put_and_wait)
    status, headers, answer = receive.call(to_form(form, b"name=Ada", origin=PAGE))
    assert (status, headers["Access-Control-Allow-Origin"]) == (202, PAGE)
    assert receive.event(answer["event_id"]).form_id == form.form_id


def test_no_secret_no_body_and_no_header_is_logged(receive: Receive, capsys: pytest.CaptureFixture[str]) -> None:
    source, form = receive.source(), receive.form()
    shared = receive.source(Provider.SHARED_SECRET, "shared-secret-text", header="X-Token")
    receive.call(to_hook(source))
    receive.call(to_hook(source, signature="sha256=wrong-signature"))
    receive.call(to_hook(shared, x_token="shared-secret-text"))
    receive.call(to_hook(shared, x_token="a-guess-of-the-secret"))
    receive.call(to_form(form, b"name=Ada+Lovelace", origin="https://a-page.example"))
    receive.call(to_form(form, b"name=\xff"))
    logged = capsys.readouterr().out
    assert logged.count('"message":"receive"') == 6
    lines = [json.loads(line) for line in logged.splitlines()]
    assert {line["tenant_id"] for line in lines if "tenant_id" in line} == {"acme"}
    for secret in (SECRET, "Everybody", "shared-secret-text", "a-guess", "Hello", SIGNATURE, "wrong-signature"):
        assert secret not in logged
    for given in ("Lovelace", "a-page.example", "dXNlcjpwYXNzd29yZA", "72d3162e", "session=abc"):
        assert given not in logged
