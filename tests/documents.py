"""The OpenAPI documents, as tests read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

from orchestrator.api import openapi
from orchestrator.api.route import AnyRoute

Json = dict[str, Any]


@dataclass(frozen=True)
class Document:
    api: openapi.Api
    json: Json

    @classmethod
    def of(cls, api: openapi.Api) -> Document:
        return cls(api, json.loads(openapi.written(api)))

    def operation_of(self, route: AnyRoute) -> Json:
        found: Json = self.json["paths"][route.path][openapi.documented_method(route)]
        return found

    def resolved(self, part: Json) -> Json:
        """The part that a reference names. One step is enough for responses, headers and examples."""
        found: Any = self.json
        for step in part["$ref"].split("/")[1:] if "$ref" in part else []:
            found = found[step]
        return found if "$ref" in part else part

    def shown(self, media: Json) -> list[Any]:
        """The examples of a media type."""
        if "examples" not in media:
            return [media["example"]]
        return [self.resolved(each)["value"] for each in media["examples"].values()]

    def validator(self, schema: Json) -> Draft202012Validator:
        return Draft202012Validator({**schema, "components": self.json["components"]})

    def media_types(self) -> Iterator[tuple[str, Json]]:
        """Every media type of a request or an answer, with a name."""
        for route in self.api.routes:
            operation = self.operation_of(route)
            for kind, media in operation.get("requestBody", {}).get("content", {}).items():
                yield f"{route.name} {kind}", media
            for status, response in operation["responses"].items():
                for kind, media in self.resolved(response).get("content", {}).items():
                    yield f"{route.name} {status} {kind}", media

    def request_examples(self, route: AnyRoute) -> list[Any]:
        """The examples of a request's body, for a route whose requests have a wire model."""
        operation = self.operation_of(route)
        if "requestBody" not in operation or route.bodies:
            return []
        return self.shown(operation["requestBody"]["content"]["application/json"])


CONTROL_PLANE = Document.of(openapi.CONTROL_PLANE)
EVENT_PLANE = Document.of(openapi.EVENT_PLANE)
DOCUMENTS = (CONTROL_PLANE, EVENT_PLANE)
IDS = {
    "tenantId": "acme",
    "version": "0.2.0",
    **dict.fromkeys(("rolloutId", "reconciliationId"), "20261116-120000-0000"),
    "keyId": f"key_{'0' * 24}",
    "sourceId": f"src_{'0' * 24}",
    "formId": f"form_{'0' * 24}",
    **dict.fromkeys(("connectionId", "subscriptionId"), f"conn_{'0' * 24}"),
    "eventId": "0193f1c0-4a00-7000-8000-00000000a1b0",
}
"""An id for every parameter of a path."""
