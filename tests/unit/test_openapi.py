"""docs/openapi.json says what the API takes and what it answers: no less, and no more."""

from __future__ import annotations

import base64
import copy
import importlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import jsonschema_rs
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from requests.adapters import HTTPAdapter
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.core.transport import Response
from urllib3 import HTTPResponse

from orchestrator import validation
from orchestrator.admission import Refusal
from orchestrator.credentials import Access, Credentials
from orchestrator.errors import InvalidRequest, Throttled
from orchestrator.fleet import PAGE_SIZE
from orchestrator.get_queue import GetQueue
from orchestrator.lifecycle import Lifecycle
from orchestrator.operator_requests import MOST_A_PAGE, parse_create, parse_delete, parse_list, parse_upgrade
from orchestrator.records import Attempt, Messages, Operation, Queue, Request, Status, TenantState
from orchestrator.tenants import TenantId
from tests.fakes import (
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    FakeClock,
    FakeExecutions,
    FakeQueues,
    InMemoryTable,
    a_release,
    a_run,
    an_audit,
    some_metadata,
    stack_arn,
    take,
)
from tests.openapi import CHECKS, DOCUMENT, cover, drive, load, operations

ROOT = Path(__file__).parents[2]
BASE_URL = "https://berth.test"
QUEUE_ROUTE = "GET /tenants/{tenantId}/queue"
PROBLEM = "application/problem+json"
OPERATIONS = operations(DOCUMENT)
LATER = NOON + timedelta(minutes=1)
LATEST = LATER + timedelta(minutes=1)


# A control plane with a tenant in every state


@dataclass(frozen=True)
class State:
    """What is recorded of a tenant."""

    at: str | None = None
    """The version of its queue."""
    withdrawn: bool = False
    """Its queue is not served any more."""
    pinned: str | None = None
    full: bool = False
    """There are messages in its queue."""
    deleted: bool = False
    failed: tuple[Operation, str | None] | None = None
    """The latest operation that ended, and the version that it was to bring about."""
    running: Operation | None = None


STATES = {
    "never-heard-of": State(),
    "ready": State(at=NEXT_VERSION),
    "outdated": State(at=VERSION),
    "pinned": State(at=VERSION, pinned=VERSION),
    "full": State(at=NEXT_VERSION, full=True),
    "provisioning": State(running=Operation.CREATE),
    "updating": State(at=VERSION, running=Operation.UPDATE),
    "deleting": State(at=VERSION, running=Operation.DELETE),
    "deleted": State(deleted=True),
    "create-failed": State(failed=(Operation.CREATE, NEXT_VERSION)),
    "create-failed-as-update-began": State(failed=(Operation.CREATE, NEXT_VERSION), running=Operation.UPDATE),
    "create-at-unknown-release-failed": State(failed=(Operation.CREATE, "0.0.9")),
    "update-failed": State(at=VERSION, failed=(Operation.UPDATE, NEXT_VERSION)),
    "update-of-pinned-failed": State(at=VERSION, pinned=VERSION, failed=(Operation.UPDATE, NEXT_VERSION)),
    "update-to-older-failed": State(at=NEXT_VERSION, failed=(Operation.UPDATE, VERSION)),
    "update-of-nothing-failed": State(failed=(Operation.UPDATE, NEXT_VERSION)),
    "update-of-deleted-failed": State(deleted=True, failed=(Operation.UPDATE, NEXT_VERSION)),
    "delete-failed": State(failed=(Operation.DELETE, NEXT_VERSION)),
    "delete-of-full-failed": State(at=NEXT_VERSION, withdrawn=True, full=True, failed=(Operation.DELETE, NEXT_VERSION)),
    "delete-before-versions-failed": State(failed=(Operation.DELETE, None)),
}


class Issuer:
    def issue(self, tenant: TenantId, queue: Queue, access: Access) -> Credentials:  # noqa: ARG002 - the port's
        return Credentials(access, "an id", "a secret", "a token", LATER)


@dataclass
class World:
    """What the functions find in place of their wiring."""

    table: Any = field(default_factory=InMemoryTable)
    executions: FakeExecutions = field(default_factory=FakeExecutions)
    queues: FakeQueues = field(default_factory=FakeQueues)
    clock: FakeClock = field(default_factory=FakeClock)
    credentials: Issuer | None = field(default_factory=Issuer)
    settings: object = field(default_factory=lambda: SimpleNamespace(version=NEXT_VERSION))

    @property
    def get_queue(self) -> GetQueue:
        return GetQueue(self.table, self.executions, self.clock, NEXT_VERSION)

    @property
    def lifecycle(self) -> Lifecycle:
        table = self.table
        return Lifecycle(table, table, table, self.executions, self.queues, self.clock, NEXT_VERSION)

    def plant(self, tenant: TenantId, state: State) -> None:
        if state.at:
            planted = some_metadata(
                tenant=tenant,
                version=state.at,
                queue=OTHER_QUEUE if state.full else QUEUE,
                withdrawn_by="a delete" if state.withdrawn else None,
                pinned_version=state.pinned,
                labels={"plan": "gold"},
            )
            self.table.plant_metadata(planted)
            self.table.plant_audit(an_audit(Status.SUCCESS, tenant=tenant, version=state.at))
        if state.full:
            self.queues.held[OTHER_QUEUE.url] = Messages(3, 1, 0)
        if state.deleted:
            self.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, tenant=tenant, version=NEXT_VERSION))
        if state.failed:
            what, version = state.failed
            cause = QUEUE_TABOO if version else None
            self.table.plant_audit(
                an_audit(Status.FAILURE, what, tenant=tenant, version=version, at=LATEST, root_cause=cause)
            )
        if state.running:
            run = a_run(tenant=tenant, operation=state.running, version=NEXT_VERSION, started_at=LATER)
            take(self.table, run)
            self.executions.running.add(run.execution)


def world(**parts: Any) -> World:
    made = World(**parts)
    for version in (VERSION, NEXT_VERSION):
        made.table.record_release(a_release(version))
    for name, state in STATES.items():
        made.plant(TenantId.parse(name), state)
    return made


class InProcess(HTTPAdapter):
    """API Gateway, as far as the functions can tell. Every request finds a world in which nothing happened yet."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.world: Callable[[], World] = world
        self.functions = {name: importlib.import_module(f"lambdas.{name}") for name in ("get_queue", "operators")}
        self.monkeypatch = monkeypatch

    def send(self, request: requests.PreparedRequest, *_: object, **__: object) -> requests.Response:
        status, headers, body = self._answer(request)
        raw = HTTPResponse(io.BytesIO(body), headers, status, preload_content=False)
        return self.build_response(request, raw)

    def _answer(self, request: requests.PreparedRequest) -> tuple[int, dict[str, str], bytes]:
        url = urlsplit(str(request.url))
        for route, function in self.routes().items():
            method, _, template = route.partition(" ")
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template)
            match = re.fullmatch(pattern, unquote(url.path))
            if match and method == request.method:
                told = self._invoke(function, self._event(request, route, match.groupdict(), url.query))
                return told["statusCode"], told["headers"], told["body"].encode()
        return 404, {"Content-Type": "application/json"}, b'{"message":"Not Found"}'

    def routes(self) -> dict[str, str]:
        return {QUEUE_ROUTE: "get_queue"} | dict.fromkeys(self.functions["operators"].ROUTES, "operators")

    def _invoke(self, name: str, event: dict[str, Any]) -> Any:
        made, function = self.world(), self.functions[name]
        self.monkeypatch.setattr(function, "wiring", made)
        if name == "get_queue":
            self.monkeypatch.setattr(function, "get_queue", made.get_queue)
        return function.handler(event, None)

    @staticmethod
    def _event(
        request: requests.PreparedRequest, route: str, path_parameters: Mapping[str, str], query: str
    ) -> dict[str, Any]:
        body: Any = request.body.encode() if isinstance(request.body, str) else request.body
        event = {
            "version": "2.0",
            "routeKey": route,
            "pathParameters": path_parameters,
            "requestContext": {"authorizer": {"iam": {"userArn": EXPLICIT.by}}},
            "isBase64Encoded": bool(body),
        }
        if body:
            event["body"] = base64.b64encode(body).decode()
        if query:
            values = parse_qs(query, keep_blank_values=True)
            event["queryStringParameters"] = {name: ",".join(given) for name, given in values.items()}
        return event


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcess]:
    """The functions, loaded anew: they read their settings and find their wiring as they are loaded."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "berth")
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "CRITICAL")
    forget_functions()
    runtime = importlib.import_module("lambdas.runtime")
    monkeypatch.setattr(runtime, "wiring", world())
    monkeypatch.setattr(runtime, "count", lambda _metric: None)
    yield InProcess(monkeypatch)
    forget_functions()


def forget_functions() -> None:
    for name in [name for name in sys.modules if name == "lambdas" or name.startswith("lambdas.")]:
        del sys.modules[name]


@pytest.fixture
def session(gateway: InProcess) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        session.mount(BASE_URL, gateway)
        yield session


# The document itself


def test_it_is_an_openapi_document() -> None:
    load(DOCUMENT).validate()


def test_what_is_no_openapi_document_is_found_out() -> None:
    broken = copy.deepcopy(DOCUMENT)
    del broken["paths"]["/releases"]["get"]["responses"]["200"]["description"]
    with pytest.raises(jsonschema_rs.ValidationError):
        load(broken).validate()


def test_it_is_of_this_version() -> None:
    assert DOCUMENT["info"]["version"] == (ROOT / "version.txt").read_text(encoding="utf-8").strip()


def test_its_routes_are_those_of_the_functions(gateway: InProcess) -> None:
    assert {operation.label for operation in OPERATIONS.values()} == set(gateway.routes())


def test_every_operation_has_a_name_of_its_own_and_says_what_it_does() -> None:
    assert len(OPERATIONS) == sum(len(entries) for entries in DOCUMENT["paths"].values())
    assert all(operation.definition.raw["summary"] for operation in OPERATIONS.values())


def test_every_request_is_signed() -> None:
    assert DOCUMENT["security"] == [{"sigv4": []}]
    assert DOCUMENT["components"]["securitySchemes"]["sigv4"]["x-amazon-apigateway-authtype"] == "awsSigv4"
    assert not [name for name, operation in OPERATIONS.items() if "security" in operation.definition.raw]


def references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        yield from ([part["$ref"]] if isinstance(part.get("$ref"), str) else [])
        for inner in part.values():
            yield from references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from references(inner)


def test_every_reference_leads_to_a_component_and_every_component_is_referred_to() -> None:
    components = {
        f"#/components/{kind}/{name}"
        for kind, named in DOCUMENT["components"].items()
        if kind != "securitySchemes"
        for name in named
    }
    assert set(references(DOCUMENT)) == components


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """What a reference leads to, one step: enough for responses and headers."""
    found: Any = DOCUMENT
    for step in part["$ref"].split("/")[1:] if "$ref" in part else []:
        found = found[step]
    return found if "$ref" in part else part


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def _media_types() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, operation in OPERATIONS.items():
        for kind, media in operation.definition.raw.get("requestBody", {}).get("content", {}).items():
            yield f"{name} {kind}", media
        for status, response in operation.definition.raw["responses"].items():
            for kind, media in resolved(response)["content"].items():
                yield f"{name} {status} {kind}", media


MEDIA_TYPES = dict(_media_types())


@pytest.mark.parametrize("media", MEDIA_TYPES.values(), ids=MEDIA_TYPES)
def test_there_are_examples_and_they_are_what_the_schema_allows(media: dict[str, Any]) -> None:
    examples = [media["example"]] if "example" in media else [each["value"] for each in media["examples"].values()]
    assert examples
    for example in examples:
        validator(media["schema"]).validate(example)


# What it says about requests


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][name]
    return found


def rules(name: str) -> dict[str, Any]:
    """A schema without what it tells people."""
    return {key: value for key, value in schema(name).items() if key not in ("description", "examples")}


def parameter(operation_id: str, name: str) -> dict[str, Any]:
    parameters = OPERATIONS[operation_id].definition.raw["parameters"]
    (found,) = (each for each in parameters if each.get("name") == name)
    return dict(found["schema"])


def test_ids_versions_and_labels_are_those_that_requests_are_checked_for() -> None:
    assert rules("TenantId") == validation.TENANT_ID
    assert rules("Version") == validation.VERSION
    assert rules("Labels") == validation.LABELS
    assert parameter("deleteTenant", "drainSeconds") == {**validation.DRAIN_SECONDS, "default": 0}
    assert parameter("listTenants", "limit") == {
        "type": "integer",
        "minimum": 1,
        "maximum": MOST_A_PAGE,
        "default": PAGE_SIZE,
    }


def test_states_operations_and_accesses_are_all_there() -> None:
    assert schema("TenantState")["enum"] == list(TenantState)
    assert schema("Operation")["enum"] == list(Operation)
    assert schema("OperationStatus")["enum"] == list(Status)
    assert schema("Access")["enum"] == list(Access)


def understood(parse: Callable[[Mapping[str, Any]], object], **event: Any) -> bool:
    try:
        parse({"pathParameters": {"tenantId": "acme"}, **event})
    except InvalidRequest:
        return False
    return True


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        "text",
        {"version": "0.1.0"},
        {"version": "0.1.0\n"},
        {"version": "latest"},
        {"version": None},
        {"version": 1},
        {"labels": {}},
        {"labels": {"plan": ""}},
        {"labels": {"plan": None}},
        {"labels": {"": "gold"}},
        {"labels": {"n" * 63: "v" * 128}},
        {"labels": {"n" * 64: "gold"}},
        {"labels": {"plan": "v" * 129}},
        {"labels": {str(n): "" for n in range(20)}},
        {"labels": {str(n): "" for n in range(21)}},
        {"labels": None},
        {"allowDowngrade": True},
        {"allowReplacement": False, "allowDowngrade": False},
        {"allowDowngrade": "true"},
        {"force": True},
    ],
    ids=lambda body: json.dumps(body)[:40],
)
@pytest.mark.parametrize(("name", "parse"), [("CreateTenant", parse_create), ("UpgradeTenant", parse_upgrade)])
def test_a_body_is_allowed_if_and_only_if_it_is_understood(
    name: str, parse: Callable[[Mapping[str, Any]], object], body: object
) -> None:
    # None at all is as good as {}, so what is sent for null is null.
    allowed = validator({"$ref": f"#/components/schemas/{name}"}).is_valid(body) and not ends_with_newline(body)
    assert allowed == understood(parse, body=json.dumps(body))


def ends_with_newline(body: object) -> bool:
    """Which `$` lets through in Python, but not in the dialect that JSON schemas are written in."""
    return isinstance(body, dict) and any(isinstance(text, str) and text.endswith("\n") for text in body.values())


@pytest.mark.parametrize(
    ("operation_id", "parse", "name", "texts"),
    [
        ("deleteTenant", parse_delete, "force", ["true", "false", "", "1", "True", "null"]),
        ("deleteTenant", parse_delete, "drainSeconds", ["0", "1200", "1201", "-1", "", "1.5", "many"]),
        ("listTenants", parse_list, "limit", ["0", "1", "500", "501", "-1", "", "many"]),
    ],
)
def test_a_query_is_allowed_if_and_only_if_it_is_understood(
    operation_id: str, parse: Callable[[Mapping[str, Any]], object], name: str, texts: list[str]
) -> None:
    def meant(text: str) -> object:
        try:
            return json.loads(text)
        except ValueError:
            return text

    for text in texts:
        allowed = validator(parameter(operation_id, name)).is_valid(meant(text))
        assert allowed == understood(parse, queryStringParameters={name: text}), text


# What it says about answers


@dataclass(frozen=True)
class Asked:
    operation_id: str
    tenant: str | None = None
    query: Mapping[str, object] = field(default_factory=dict)
    body: Mapping[str, object] | None = None


def ask(session: requests.Session, asked: Asked) -> Response:
    """The answer, if it is one that the document allows."""
    more: dict[str, Any] = {} if asked.body is None else {"body": asked.body, "media_type": "application/json"}
    case = OPERATIONS[asked.operation_id].Case(
        path_parameters={"tenantId": asked.tenant} if asked.tenant else {}, query=dict(asked.query), **more
    )
    # No check of whether it is a server's error: those are documented, too, and some are provoked here.
    return case.call_and_validate(base_url=BASE_URL, session=session, checks=list(CHECKS[1:]))


def of_every_tenant() -> Iterator[Asked]:
    for name in STATES:
        yield Asked("getQueue", name)
        yield Asked("getQueue", name, {"credentials": "send"})
        yield Asked("getTenant", name)
        yield Asked("createTenant", name)
        yield Asked("createTenant", name, body={"version": VERSION, "labels": {"plan": "gold"}})
        yield Asked("createTenant", name, body={"version": "9.9.9"})
        yield Asked("upgradeTenant", name)
        yield Asked("upgradeTenant", name, body={"version": VERSION})
        yield Asked("upgradeTenant", name, body={"version": NEXT_VERSION})
        yield Asked("upgradeTenant", name, body={"version": "9.9.9"})
        yield Asked("retryTenant", name)
        yield Asked("deleteTenant", name)
        yield Asked("deleteTenant", name, {"force": "true"})
    for operation_id in ("getQueue", "getTenant", "createTenant", "upgradeTenant", "retryTenant", "deleteTenant"):
        yield Asked(operation_id, "-")
    yield Asked("listTenants")
    yield Asked("listTenants", query={"limit": 3})
    yield Asked("listTenants", query={"status": "DELETED"})
    yield Asked("listTenants", query={"cursor": "made up"})
    yield Asked("listReleases")
    yield Asked("listReleases", query={"page": 2})


Kind = tuple[str, int, str | None]
"""An answer's operation, its status and, of a problem, its type."""


def status_and_type(response: Response) -> tuple[int, str | None]:
    (content_type,) = response.headers["content-type"]
    return response.status_code, response.json()["type"] if content_type == PROBLEM else None


def _documented() -> Iterator[tuple[Kind, dict[str, Any]]]:
    """Every kind of answer of Berth's own, with its schema. What API Gateway itself says is not Berth's to give."""
    for name, operation in OPERATIONS.items():
        for status, response in operation.definition.raw["responses"].items():
            for media in resolved(response)["content"].values():
                for found in media["schema"].get("oneOf", [media["schema"]]):
                    if found != {"$ref": "#/components/schemas/GatewayMessage"}:
                        told = resolved(found)
                        yield (name, int(status), told["properties"].get("type", {}).get("const")), told


DOCUMENTED = dict(_documented())


class Throttling:
    """A table that can only ask to be left alone."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def refuse(*_: object, **__: object) -> None:
            raise Throttled(f"{name}: Rate exceeded")

        return refuse


class Overtaken(FakeExecutions):
    """Whatever is to be started has been started by another caller, and has succeeded in the meantime."""

    def __init__(self, table: InMemoryTable) -> None:
        super().__init__()
        self.table = table

    def start(self, attempt: Attempt, request: Request) -> str | None:  # noqa: ARG002 - the port's
        run = replace(a_run(started_at=LATEST), attempt=attempt)
        take(self.table, run)
        self.table.publish(run, stack_id=stack_arn(), queue=QUEUE, version=attempt.version, at=LATEST)
        return None


def overtaken() -> World:
    table = InMemoryTable()
    return world(table=table, executions=Overtaken(table))


def test_every_answer_is_documented_and_every_documented_answer_is_given(
    gateway: InProcess, session: requests.Session
) -> None:
    given: set[Kind] = set()

    def note(asked: Asked) -> None:
        given.add((asked.operation_id, *status_and_type(ask(session, asked))))

    for asked in of_every_tenant():
        note(asked)
    gateway.world = lambda: world(credentials=None)
    note(Asked("getQueue", "ready", {"credentials": "send"}))
    gateway.world = overtaken
    note(Asked("retryTenant", "update-failed"))
    gateway.world = lambda: World(table=Throttling())
    for name, operation in OPERATIONS.items():
        note(Asked(name, "acme" if "{tenantId}" in operation.path else None))

    assert given == set(DOCUMENTED)


def test_every_reason_to_refuse_is_documented() -> None:
    types = {kind for _, _, kind in DOCUMENTED}
    assert {f"urn:berth:problem:{refusal}" for refusal in Refusal} <= types


def test_a_problem_says_the_status_that_it_comes_with() -> None:
    problems = {(status, kind): told for (_, status, kind), told in DOCUMENTED.items() if kind}
    assert len(problems) == len({kind for _, kind in problems})
    assert all(told["properties"]["status"] == {"const": status} for (status, _), told in problems.items())


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_what_api_gateway_itself_may_say_is_documented(operation_id: str) -> None:
    asked = OPERATIONS[operation_id]
    statuses = {"403", "429", "500", "503"} | ({"404"} if "{tenantId}" in asked.path else set())
    message = {"$ref": "#/components/schemas/GatewayMessage"}
    responses = asked.definition.raw["responses"]
    assert {
        status
        for status, response in responses.items()
        if resolved(response)["content"].get("application/json", {}).get("schema") == message
    } == statuses


def test_every_header_of_an_answer_is_documented(session: requests.Session) -> None:
    for asked in of_every_tenant():
        response = ask(session, asked)
        responses = OPERATIONS[asked.operation_id].definition.raw["responses"]
        told = resolved(responses[str(response.status_code)])
        known = {name.lower() for name in told.get("headers", {})} | {"content-type"}
        assert set(response.headers) <= known, asked


def test_credentials_are_given_where_they_are_asked_for(session: requests.Session) -> None:
    response = ask(session, Asked("getQueue", "ready", {"credentials": "send"}))
    assert response.json()["credentials"]["access"] == "send"
    assert response.headers["cache-control"] == ["no-store"]


# Whatever is asked


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation_id", [name for name in OPERATIONS if name != "listReleases"])
def test_requests_made_from_the_document_are_answered_as_it_says(
    session: requests.Session, operation_id: str, mode: GenerationMode
) -> None:
    seen = drive(OPERATIONS[operation_id], mode, session, BASE_URL, tenants=list(STATES), max_examples=25)
    assert seen.total() >= 10


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_requests_at_the_documents_boundaries_are_answered_as_it_says(
    session: requests.Session, operation_id: str
) -> None:
    seen = cover(OPERATIONS[operation_id], session, BASE_URL, tenants=list(STATES))
    assert seen.total() > 1


def responses_of_get_queue(document: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = document["paths"]["/tenants/{tenantId}/queue"]["get"]["responses"]
    return responses


def drain_seconds(document: dict[str, Any]) -> dict[str, Any]:
    schemas: list[dict[str, Any]] = [
        each["schema"]
        for each in document["paths"]["/tenants/{tenantId}"]["delete"]["parameters"]
        if each.get("name") == "drainSeconds"
    ]
    (found,) = schemas
    return found


def _a_status_is_left_out(document: dict[str, Any]) -> None:
    del responses_of_get_queue(document)["424"]


def _errors_are_plain_json(document: dict[str, Any]) -> None:
    content = document["components"]["responses"]["InvalidRequest"]["content"]
    content["application/json"] = content.pop(PROBLEM)


def _a_header_is_promised(document: dict[str, Any]) -> None:
    responses_of_get_queue(document)["202"]["headers"]["Location"] = {"$ref": "#/components/headers/Location"}


def _a_field_is_promised(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["Queue"]["required"].append("region")


def _a_field_is_left_out(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["Provisioning"]["required"].remove("execution")
    del document["components"]["schemas"]["Provisioning"]["properties"]["execution"]


def _a_problem_is_left_out(document: dict[str, Any]) -> None:
    document["components"]["schemas"]["TenantDeleted"]["properties"]["type"]["const"] += "-for-ever"


def _more_is_taken(document: dict[str, Any]) -> None:
    drain_seconds(document)["maximum"] += 1


def _less_is_taken(document: dict[str, Any]) -> None:
    drain_seconds(document)["maximum"] -= 1


@pytest.mark.parametrize(
    ("lie", "operation_id", "tenant", "found_by"),
    [
        (_a_status_is_left_out, "getQueue", "create-failed", "status_code_conformance"),
        (_errors_are_plain_json, "getQueue", "ready", "content_type_conformance"),
        (_a_header_is_promised, "getQueue", "provisioning", "response_headers_conformance"),
        (_a_field_is_promised, "getQueue", "ready", "response_schema_conformance"),
        (_a_field_is_left_out, "getQueue", "provisioning", "response_schema_conformance"),
        (_a_problem_is_left_out, "getQueue", "deleted", "response_schema_conformance"),
        (_more_is_taken, "deleteTenant", "ready", "positive_data_acceptance"),
        (_less_is_taken, "deleteTenant", "ready", "negative_data_rejection"),
    ],
)
def test_a_document_that_lies_is_found_out(
    session: requests.Session, lie: Callable[[dict[str, Any]], None], operation_id: str, tenant: str, found_by: str
) -> None:
    document = copy.deepcopy(DOCUMENT)
    lie(document)
    asked = operations(document)[operation_id]
    (check,) = (check for check in CHECKS if check.__name__ == found_by)
    with pytest.raises(FailureGroup):
        cover(asked, session, BASE_URL, tenants=[tenant], checks=[check])


def test_property_tests_still_tell_what_they_fail_with() -> None:
    @given(number=st.integers())
    def fails(number: int) -> None:
        assert number < 5

    with pytest.raises(AssertionError) as failure:
        fails()
    assert "number=5" in "".join(failure.value.__notes__)
