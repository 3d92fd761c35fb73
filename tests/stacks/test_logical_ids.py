"""A deployment updates the resources of the previous release, and does not replace them.

CloudFormation identifies a resource by its logical id and type. Under another id, a table, queue or log group is a new
and empty resource, and the former resource is deleted or left behind. New resources need no entry here.

Until a release is recorded, today's templates stand for it. So the comparison is tested, too.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.released import (
    CONTROL_PLANE,
    EVENT_PLANE,
    RELEASED,
    Released,
    describe,
    exports_of,
    imports_of,
    released,
)

Json = dict[str, Any]

DELETED: dict[str, str] = {}
"""The released resources that this version does not have, by logical id, each with the reason why it may be deleted.

A resource may not be deleted if it stores data, if its name or ARN is known outside, or if it is needed during a
deployment.
"""
MAY_GO = {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "Custom::Release"}
"""The types of resources that store nothing. docs/runbook.md says which alarm covers what. The next release has a
resource of its own; the former one is retained, and the release stays published."""


BY_DEFAULT = pytest.mark.parametrize(
    ("stack", "template"), [(CONTROL_PLANE, "control_plane"), (EVENT_PLANE, "event_plane")]
)
"""Both stacks with the default settings."""
WITH_EVERYTHING = pytest.mark.parametrize(
    ("stack", "template"), [(CONTROL_PLANE, "with_key"), (EVENT_PLANE, "events_with_key")]
)
"""Both stacks with everything switched on."""


@pytest.fixture(scope="module")
def then(control_plane: Json, with_key: Json, event_plane: Json, events_with_key: Json) -> dict[str, Released]:
    """The release before this one, by stack."""
    if RELEASED.exists():
        return {stack: released(stack) for stack in (CONTROL_PLANE, EVENT_PLANE)}
    return {CONTROL_PLANE: describe(control_plane, with_key), EVENT_PLANE: describe(event_plane, events_with_key)}


def differences(template: Json, expected: dict[str, str]) -> dict[str, tuple[str, str | None]]:
    """The released type and the current type of every resource whose type differs."""
    now = {name: resource["Type"] for name, resource in template["Resources"].items()}
    return {
        name: (kind, now.get(name))
        for name, kind in expected.items()
        if now.get(name) != kind and name not in DELETED and kind not in MAY_GO
    }


@BY_DEFAULT
def test_every_released_resource_keeps_its_logical_id_and_type(
    stack: str, template: str, request: pytest.FixtureRequest, then: dict[str, Released]
) -> None:
    assert differences(request.getfixturevalue(template), then[stack]["defaults"]) == {}


@WITH_EVERYTHING
def test_every_released_resource_that_settings_add_keeps_its_logical_id_and_type(
    stack: str, template: str, request: pytest.FixtureRequest, then: dict[str, Released]
) -> None:
    before = then[stack]
    kept = {name: kind for name, kind in before["defaults"].items() if name not in before["left_out"]}
    expected = kept | before["added"]
    assert differences(request.getfixturevalue(template), expected) == {}


def test_listed_as_deleted_are_only_released_resources_that_no_longer_exist(
    with_key: Json, events_with_key: Json, then: dict[str, Released]
) -> None:
    assert {name for each in then.values() for name in each["defaults"] | each["added"]} >= DELETED.keys()
    assert not (with_key["Resources"] | events_with_key["Resources"]).keys() & DELETED.keys()


@WITH_EVERYTHING
def test_every_released_export_is_still_exported(
    stack: str, template: str, request: pytest.FixtureRequest, then: dict[str, Released]
) -> None:
    """CloudFormation refuses to delete an export that another stack imports: an event plane of then, another team's."""
    assert set(exports_of(request.getfixturevalue(template))) >= set(then[stack]["exports"])


def test_the_released_event_plane_finds_what_it_imports_in_this_control_plane(
    with_key: Json, then: dict[str, Released]
) -> None:
    """The control plane is deployed first, and goes back last."""
    imported = then[EVENT_PLANE]["imports"]
    assert imported
    assert set(imported) <= set(exports_of(with_key))


def test_the_event_plane_imports_what_the_control_plane_exports(with_key: Json, events_with_key: Json) -> None:
    imported = imports_of(events_with_key)
    assert imported
    assert set(imported) <= set(exports_of(with_key))


def test_a_changed_id_and_a_changed_type_are_detected(control_plane: Json) -> None:
    resources = dict(control_plane["Resources"])
    resources["TenantsTableMoved"] = resources.pop("TenantsTable97BAC775")
    resources["QueueApiF10A4C7B"] = {"Type": "AWS::ApiGateway::RestApi"}
    before = {name: resource["Type"] for name, resource in control_plane["Resources"].items()}
    assert differences({"Resources": resources}, before) == {
        "TenantsTable97BAC775": ("AWS::DynamoDB::Table", None),
        "QueueApiF10A4C7B": ("AWS::ApiGatewayV2::Api", "AWS::ApiGateway::RestApi"),
    }
