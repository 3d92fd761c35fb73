"""Both OpenAPI documents are complete, and have examples that the wire models accept."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from orchestrator.api import openapi, openapi_schemas
from orchestrator.api.reading import decode, read
from orchestrator.api.route import AnyRoute
from tests.documents import DOCUMENTS, IDS, Document, Json
from tests.openapi import load

every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda each: each.api.examples.stem)
MEDIA_TYPES = {
    f"{document.api.examples.stem}: {name}": (document, media)
    for document in DOCUMENTS
    for name, media in document.media_types()
}
ROUTES = [
    pytest.param(document, route, id=f"{document.api.examples.stem}: {route.name}")
    for document in DOCUMENTS
    for route in document.api.routes
]


@every_document
def test_every_type_with_a_name_is_declared_once(document: Document) -> None:
    titles = Counter(title for title, _ in set(openapi_schemas.named_types(document.api)))
    assert set(titles.values()) == {1}


@every_document
def test_the_document_is_valid_openapi(document: Document) -> None:
    load(document.json).validate()


@every_document
def test_every_operation_has_a_unique_name_and_a_summary(document: Document) -> None:
    operations = [document.operation_of(route) for route in document.api.routes]
    assert len({each["operationId"] for each in operations}) == len(operations)
    assert all(each["summary"] for each in operations)


@every_document
def test_descriptions_have_no_indentation(document: Document) -> None:
    """Markdown shows indented lines as code, and Python keeps the indentation of docstrings only before 3.13."""
    assert not re.findall(r'"description": "[^"]*\\n [^"]*"', openapi.written(document.api))


def references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        yield from ([part["$ref"]] if isinstance(part.get("$ref"), str) else [])
        for inner in part.values():
            yield from references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from references(inner)


@every_document
def test_every_reference_leads_to_a_component_and_every_component_is_referred_to(document: Document) -> None:
    components = {
        f"#/components/{kind}/{name}"
        for kind, named in document.json["components"].items()
        if kind != "securitySchemes"
        for name in named
    }
    assert set(references(document.json)) == components


@pytest.mark.parametrize(("document", "media"), MEDIA_TYPES.values(), ids=MEDIA_TYPES)
def test_there_are_examples_and_the_schema_allows_them(document: Document, media: Json) -> None:
    examples = document.shown(media)
    assert examples
    for example in examples:
        document.validator(media["schema"]).validate(example)


@pytest.mark.parametrize(("document", "route"), ROUTES)
def test_the_wire_models_accept_the_examples(document: Document, route: AnyRoute) -> None:
    responses = document.operation_of(route)["responses"]
    for answer in route.answers:
        response = document.resolved(responses[str(answer.status)])
        if answer.model is None:
            assert "content" not in response
            continue
        for example in document.shown(response["content"]["application/json"]):
            decode(answer.model, example)
    for example in document.request_examples(route):
        read(route, {"pathParameters": IDS, "body": json.dumps(example)})
