"""A deployment updates the resources of the previous release, and does not replace them.

CloudFormation identifies a resource by its logical id and type. Under another id, a table, queue or log group is a new
and empty resource, and the former resource is deleted or left behind. New resources need no entry here.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.released import released

Json = dict[str, Any]

DELETED: dict[str, str] = {}
"""The released resources that this version does not have, by logical id, each with the reason why it may be deleted.

A resource may not be deleted if it stores data, if its name or ARN is known outside, or if it is needed during a
deployment.
"""
MAY_GO = {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"}
"""The types of resources that store nothing. docs/runbook.md says which alarm covers what."""


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """Every resource of the released control plane with the default settings."""
    return released()["defaults"]


@pytest.fixture(scope="module")
def expected_with_key(expected: dict[str, str]) -> dict[str, str]:
    """Every resource of the released control plane with everything switched on."""
    return expected | released()["added"]


def differences(template: Json, expected: dict[str, str]) -> dict[str, tuple[str, str | None]]:
    """The released type and the current type of every resource whose type differs."""
    now = {name: resource["Type"] for name, resource in template["Resources"].items()}
    return {
        name: (kind, now.get(name))
        for name, kind in expected.items()
        if now.get(name) != kind and name not in DELETED and kind not in MAY_GO
    }


def test_every_released_resource_keeps_its_logical_id_and_type(control_plane: Json, expected: dict[str, str]) -> None:
    assert differences(control_plane, expected) == {}


def test_every_released_resource_that_settings_add_keeps_its_logical_id_and_type(
    with_key: Json, expected_with_key: dict[str, str]
) -> None:
    assert differences(with_key, expected_with_key) == {}


def test_listed_as_deleted_are_only_released_resources_that_no_longer_exist(
    with_key: Json, expected_with_key: dict[str, str]
) -> None:
    assert expected_with_key.keys() >= DELETED.keys()
    assert not with_key["Resources"].keys() & DELETED.keys()


def test_a_changed_id_and_a_changed_type_are_detected(control_plane: Json, expected: dict[str, str]) -> None:
    resources = dict(control_plane["Resources"])
    resources["TenantsTableMoved"] = resources.pop("TenantsTable97BAC775")
    resources["QueueApiF10A4C7B"] = {"Type": "AWS::ApiGateway::RestApi"}
    assert differences({"Resources": resources}, expected) == {
        "TenantsTable97BAC775": ("AWS::DynamoDB::Table", None),
        "QueueApiF10A4C7B": ("AWS::ApiGatewayV2::Api", "AWS::ApiGateway::RestApi"),
    }
