"""A deployment changes the resources that the release before has deployed. It does not replace them.

CloudFormation knows a resource by its logical id and its type. Under another id the table, a queue or a log group is a
new and empty one, and the former one is deleted or left behind. New resources need no entry here.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.released import released

Json = dict[str, Any]

GONE: dict[str, str] = {}
"""Each released resource that this version does not have, by its logical id, and why it may be deleted.

Nothing that holds data, is known by its name or ARN outside, or is needed while a deployment is under way.
"""


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """Every resource of the released control plane with the settings' defaults."""
    return released()["defaults"]


@pytest.fixture(scope="module")
def expected_with_key(expected: dict[str, str]) -> dict[str, str]:
    """Every resource of the released control plane with all that can be switched on."""
    return expected | released()["added"]


def differences(template: Json, expected: dict[str, str]) -> dict[str, tuple[str, str | None]]:
    """The type then, and now."""
    now = {name: resource["Type"] for name, resource in template["Resources"].items()}
    return {
        name: (kind, now.get(name)) for name, kind in expected.items() if now.get(name) != kind and name not in GONE
    }


def test_every_released_resource_keeps_its_logical_id_and_type(control_plane: Json, expected: dict[str, str]) -> None:
    assert differences(control_plane, expected) == {}


def test_so_does_every_resource_that_settings_add(with_key: Json, expected_with_key: dict[str, str]) -> None:
    assert differences(with_key, expected_with_key) == {}


def test_only_released_resources_that_are_gone_are_listed_as_gone(
    with_key: Json, expected_with_key: dict[str, str]
) -> None:
    assert expected_with_key.keys() >= GONE.keys()
    assert not with_key["Resources"].keys() & GONE.keys()


def test_another_id_and_another_type_are_found(control_plane: Json, expected: dict[str, str]) -> None:
    resources = dict(control_plane["Resources"])
    resources["TenantsTableMoved"] = resources.pop("TenantsTable97BAC775")
    resources["QueueApiF10A4C7B"] = {"Type": "AWS::ApiGateway::RestApi"}
    assert differences({"Resources": resources}, expected) == {
        "TenantsTable97BAC775": ("AWS::DynamoDB::Table", None),
        "QueueApiF10A4C7B": ("AWS::ApiGatewayV2::Api", "AWS::ApiGateway::RestApi"),
    }
