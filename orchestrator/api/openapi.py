"""Generates the OpenAPI documents of the control plane and of the event plane from the declared routes.

``berth openapi`` prints them. Each has a file of examples: one for each model and each kind of problem, and more for
routes that differ.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.api import (
    comparison_routes,
    connection_models,
    delivery_routes,
    event_change_routes,
    event_configuration_models,
    event_fields,
    event_read_routes,
    event_routes,
    fields,
    operation_routes,
    queue_routes,
    receiving_routes,
    reconciliation_routes,
    release_models,
    rollout_models,
    rollout_requests,
    tenant_models,
)
from orchestrator.api.event_plane_routes import EVENT_ROUTES
from orchestrator.api.for_operators import OPERATORS_SUFFIX
from orchestrator.api.openapi_schemas import SCHEMA, Api, Json, Schemas
from orchestrator.api.problems import TYPE_PREFIX, Problem
from orchestrator.api.route import ANY_METHOD, RETRY_AFTER, RETRY_AFTER_SOMETIMES, Answer, AnyRoute, Audience, Header
from orchestrator.api.routes import ROUTES
from orchestrator.common.own_versions import berth_version

_EXAMPLES = Path(__file__).with_name("examples")

_TAGS = {
    Audience.PLATFORM: "platforms",
    Audience.SENDER: "senders and receivers",
    Audience.RECEIVER: "senders and receivers",
    Audience.OPERATOR: "operators",
    Audience.TENANT: "tenants",
    Audience.PUBLIC: "everybody",
}
_GATEWAY = {
    403: ("ForbiddenByGateway", "API Gateway: the caller may not call this route.", "Forbidden"),
    404: ("NoSuchPath", "API Gateway: there is no such path. An id has no slashes.", "Not Found"),
    429: ("TooManyRequests", "API Gateway: too many requests. Try again.", "Too Many Requests"),
    500: ("Fault", "API Gateway: Berth failed unexpectedly. The logs have the error.", "Internal Server Error"),
    503: ("Unavailable", "API Gateway: Berth could not be reached. Try again.", "Service Unavailable"),
}
"""The answers that API Gateway gives itself, because it did not call Berth, or because Berth failed."""

_GATEWAY_MESSAGE: Json = {
    "description": "An answer that API Gateway gives itself: it did not call Berth, or Berth failed.",
    "type": "object",
    "required": ["message"],
    "properties": {"message": {"type": ["string", "null"]}},
}
_PROBLEM: Json = {
    "description": "Problem details (RFC 9457). The type is stable; title and detail are for people.",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri", "pattern": f"^{TYPE_PREFIX}[a-z-]+$"},
        "title": {"type": "string", "minLength": 1},
        "status": {"type": "integer"},
        "detail": {"type": "string", "minLength": 1},
    },
}


def documented_method(route: AnyRoute) -> str:
    """OpenAPI has no word for every method, so the document shows the usual one."""
    return "post" if route.method == ANY_METHOD else route.method.lower()


class _Document:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._examples: Json = json.loads(api.examples.read_text(encoding="utf-8"))
        self._schemas = Schemas(api)
        self._used: Json = {}
        """The examples that routes refer to, by name."""

    def made(self, version: str) -> Json:
        paths: Json = {}
        for route in self._api.routes:
            paths.setdefault(route.path, {})[documented_method(route)] = self._operation(route)
        components = {
            "securitySchemes": _security_schemes(self._api),
            "responses": _shared_responses(paths),
            "examples": dict(sorted(self._used.items())),
        }
        schemas = {"Problem": _PROBLEM, "GatewayMessage": _GATEWAY_MESSAGE, **self._schemas.components}
        used = _reachable([paths, components], schemas)
        components["schemas"] = {name: schemas[name] for name in sorted(used)}
        heading = {**self._api.heading, "info": {**self._api.heading["info"], "version": version}}
        return {**heading, "paths": paths, "components": components}

    def _operation(self, route: AnyRoute) -> Json:
        operation: Json = {"operationId": route.name, "tags": [_TAGS[route.audience]], "summary": route.summary}
        needs_scope = f"The API key needs the scope {route.scope}." if route.scope else ""
        if described := " ".join(filter(None, [route.description, needs_scope])):
            operation["description"] = described
        if route.audience in _SECURITY:
            operation["security"] = _SECURITY[route.audience]
        properties, required = self._schemas.of_request(route)
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": properties[name]} for name in route.path_parameters
        ]
        others = [name for name in properties if name not in route.path_parameters]
        if not route.has_body:
            parameters += [self._in_query(name, properties[name], required=name in required) for name in others]
        if parameters:
            operation["parameters"] = parameters
        if route.has_body and others:
            needed = {"required": True} if required - set(route.path_parameters) else {}
            media = {"schema": self._schemas.of_body(route), "examples": self._of(route, "request")}
            operation["requestBody"] = {**needed, "content": {"application/json": media}}
        if route.bodies:
            shown = self._of(route, "request")
            content = {kind: {"schema": {}, "example": shown[kind]} for kind in route.bodies}
            operation["requestBody"] = {"required": True, "content": content}
        operation["responses"] = self._responses(route)
        return operation

    def _in_query(self, name: str, schema: Json, *, required: bool) -> Json:
        described = {key: value for key, value in schema.items() if key != "description"}
        description = schema.get("description") or self._schemas.description(schema)
        return {
            "name": name,
            "in": "query",
            **({"required": True} if required else {}),
            **({"description": description} if description else {}),
            "schema": described,
        }

    def _responses(self, route: AnyRoute) -> Json:
        responses: Json = {}
        for answer in route.answers:
            responses[str(answer.status)] = self._answer(route, answer)
        gateway = {status for status in _GATEWAY if status != 404 or route.path_parameters}
        for status in sorted({problem.status for problem in route.problems} | gateway):
            problems = [problem for problem in route.problems if problem.status == status]
            responses[str(status)] = self._problems(route, status, problems, gateway=status in gateway)
        return dict(sorted(responses.items()))

    def _answer(self, route: AnyRoute, answer: Answer[Any]) -> Json:
        headers = {header.name: _header(header) for header in answer.headers}
        described = {"description": answer.description, **({"headers": headers} if headers else {})}
        if answer.model is None:
            return described
        name = answer.model.__name__
        own = self._of_route(route).get(str(answer.status))
        if own is None:
            examples = {"example": self._shown(name, self._example("models", name))}
        else:
            examples = own.get("examples", {"example": {"value": own}})
        media = {"schema": {"$ref": SCHEMA + name}, "examples": examples}
        return {**described, "content": {"application/json": media}}

    def _problems(self, route: AnyRoute, status: int, problems: list[Problem], *, gateway: bool) -> Json:
        descriptions = [problem.description for problem in problems] + ([_GATEWAY[status][1]] if gateway else [])
        listed = "\n".join(f"- {each}" for each in descriptions)
        response: Json = {"description": descriptions[0] if len(descriptions) == 1 else listed}
        retry = [problem.retry for problem in problems]
        if any(retry):
            always = all(retry) and not gateway
            response["headers"] = {"Retry-After": _header(RETRY_AFTER if always else RETRY_AFTER_SOMETIMES)}
        content: Json = {}
        if problems:
            refs = [{"$ref": SCHEMA + self._schemas.of_problem(problem)} for problem in problems]
            examples = {name: shown for each in problems for name, shown in self._problem_examples(route, each).items()}
            content["application/problem+json"] = {
                "schema": refs[0] if len(refs) == 1 else {"oneOf": refs},
                "examples": examples,
            }
        if gateway:
            content["application/json"] = {
                "schema": {"$ref": SCHEMA + "GatewayMessage"},
                "example": {"message": _GATEWAY[status][2]},
            }
        return {**response, "content": content}

    def _problem_examples(self, route: AnyRoute, problem: Problem) -> Json:
        """The examples of a problem, with type, status and title from its declaration."""
        declared = {"type": problem.type, "title": problem.title, "status": problem.status}
        own = self._of_route(route).get("problems", {}).get(problem.kind)
        if own is not None:
            return {name: {"value": {**declared, **each}} for name, each in own.items()}
        shared = self._example("problems", problem.kind)
        return {name: self._shown(name, {**declared, **each}) for name, each in shared.items()}

    def _shown(self, name: str, value: Json) -> Json:
        self._used[name] = {"value": value}
        return {"$ref": f"#/components/examples/{name}"}

    def _of_route(self, route: AnyRoute) -> Json:
        """The examples of a route. Those of a tenants' route are also those of the operators' route for it."""
        routes: dict[str, Json] = self._examples["routes"]
        return routes.get(route.name) or routes.get(route.name.removesuffix(OPERATORS_SUFFIX)) or {}

    def _of(self, route: AnyRoute, what: str) -> Any:
        found = self._of_route(route).get(what)
        if found is None:
            raise LookupError(f"{self._api.examples.name} has no {what} in routes.{route.name}.")
        return found

    def _example(self, what: str, name: str) -> Any:
        if name not in self._examples[what]:
            raise LookupError(f"{self._api.examples.name} has no {what}.{name}.")
        return self._examples[what][name]


def _header(header: Header) -> Json:
    needed = {"required": True} if header.required else {}
    return {"description": header.description, **needed, "schema": dict(header.schema)}


def _shared_responses(paths: Json) -> Json:
    """Replace responses that several routes share by references, and return these responses as components."""
    operations = [operation for methods in paths.values() for operation in methods.values()]
    counts = Counter(
        json.dumps(response, sort_keys=True) for each in operations for response in each["responses"].values()
    )
    shared: Json = {}
    for operation in operations:
        for status, response in operation["responses"].items():
            name = _response_name(int(status), response)
            same = shared.get(name, response) == response
            if name and same and counts[json.dumps(response, sort_keys=True)] > 1:
                shared[name] = response
                operation["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    return dict(sorted(shared.items()))


def _response_name(status: int, response: Json) -> str:
    """The name of the response's model or problem. Empty if the response has several."""
    content = response.get("content")
    if content is None:
        return ""
    schema = content.get("application/problem+json", content.get("application/json"))["schema"]
    if "$ref" not in schema:
        return ""
    name = str(schema["$ref"].removeprefix(SCHEMA))
    return _GATEWAY[status][0] if name == "GatewayMessage" else name


def _reachable(roots: object, schemas: Json) -> set[str]:
    found: set[str] = set()
    waiting = [roots]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            name = str(part.get("$ref", "")).removeprefix(SCHEMA)
            if name in schemas and name not in found:
                found.add(name)
                waiting.append(schemas[name])
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found


_SIGV4: Json = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "description": "AWS Signature Version 4, service execute-api.",
    "x-amazon-apigateway-authtype": "awsSigv4",
}
_SECURITY: Mapping[Audience, list[Json]] = {
    Audience.TENANT: [{"bearer": []}, {"apiKey": []}],
    Audience.PUBLIC: [],
}
"""The security of routes that are not called with AWS credentials."""


def _security_schemes(api: Api) -> Json:
    if all(route.audience not in _SECURITY for route in api.routes):
        return {"sigv4": _SIGV4}
    return {
        "sigv4": _SIGV4,
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key of the tenant."},
        "apiKey": {"type": "apiKey", "name": "X-Api-Key", "in": "header", "description": "The same key."},
    }


_LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}


def _servers(output: str) -> list[Json]:
    return [
        {
            "url": "https://{api}.execute-api.{region}.amazonaws.com",
            "description": output,
            "variables": {"api": {"default": "a1b2c3d4e5"}, "region": {"default": "eu-west-1"}},
        }
    ]


CONTROL_PLANE = Api(
    examples=_EXAMPLES / "control-plane.json",
    routes=ROUTES,
    modules=(
        fields,
        queue_routes,
        tenant_models,
        comparison_routes,
        operation_routes,
        release_models,
        rollout_models,
        rollout_requests,
        reconciliation_routes,
    ),
    heading={
        "openapi": "3.1.0",
        "info": {
            "title": "Berth",
            "version": "",
            "summary": "Gives every tenant of a platform its own inbound SQS queue, in its own CloudFormation stack.",
            "description": "Platforms get the queues of tenants; operators manage the tenants. Requests are signed "
            "with AWS credentials (SigV4, service execute-api) of a principal that may execute-api:Invoke the route. "
            "Errors are problem details (RFC 9457) with a stable type. The header Retry-After, if an answer "
            "has it, is the number of seconds to wait before the next request.",
            "license": _LICENSE,
        },
        "servers": _servers("The output ApiUrl of the stack Berth."),
        "security": [{"sigv4": []}],
        "tags": [
            {"name": "platforms", "description": "Routes for platforms."},
            {"name": "senders and receivers", "description": "Routes for services that use the queues of tenants."},
            {"name": "operators", "description": "Routes for operators."},
        ],
    },
)
EVENT_PLANE = Api(
    examples=_EXAMPLES / "event-plane.json",
    routes=EVENT_ROUTES,
    modules=(
        fields,
        event_fields,
        event_routes,
        event_read_routes,
        event_configuration_models,
        connection_models,
        delivery_routes,
        event_change_routes,
        receiving_routes,
    ),
    heading={
        "openapi": "3.1.0",
        "info": {
            "title": "Berth events",
            "version": "",
            "summary": "Accepts the events of tenants, keeps them, and lets them be read.",
            "description": "Tenants call with an API key, for themselves. Operators call for any tenant, below "
            "/tenants/{tenantId}, with requests that are signed with AWS credentials (SigV4, service execute-api). "
            "Errors are problem details (RFC 9457) with a stable type. The header Retry-After, if an answer has it, is "
            "the number of seconds to wait before the next request.",
            "license": _LICENSE,
        },
        "servers": _servers("The output EventsApiUrl of the stack BerthEvents."),
        "security": [{"sigv4": []}],
        "tags": [
            {"name": "tenants", "description": "Routes for tenants, with an API key."},
            {"name": "operators", "description": "Routes for operators."},
            {"name": "everybody", "description": "Addresses for webhooks and forms, without credentials."},
        ],
    },
)


def written(api: Api) -> str:
    """The text of the API's document."""
    return json.dumps(_Document(api).made(berth_version()), indent=2, ensure_ascii=False) + "\n"
