"""The stack role has exactly the permissions that CloudFormation's registry lists for the resources of tenants."""

from __future__ import annotations

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from tests.registry import HANDLER_PERMISSIONS, OPERATORS_HANDLER_PERMISSIONS
from tests.stacks.conftest import Json
from tests.stacks.policies import grants


@pytest.mark.parametrize("kind", HANDLER_PERMISSIONS | OPERATORS_HANDLER_PERMISSIONS)
def test_the_recorded_permissions_are_those_of_the_registry(kind: str) -> None:
    handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema["handlers"]
    known = (HANDLER_PERMISSIONS | OPERATORS_HANDLER_PERMISSIONS)[kind]
    assert {verb: tuple(handlers[verb]["permissions"]) for verb in known} == known
    assert known.keys() == {"create", "update", "delete"}


def test_the_permissions_of_every_resource_type_of_the_template_are_recorded(tenant: Json) -> None:
    kinds = {resource["Type"] for resource in tenant["Resources"].values()}
    assert {kind for kind in kinds if not kind.startswith("Custom::")} <= HANDLER_PERMISSIONS.keys()


def test_the_stack_role_has_exactly_these_permissions_on_tenants_queues(
    control_plane: Json, stack_role: str, names: dict[str, str]
) -> None:
    needed = {action for verbs in HANDLER_PERMISSIONS.values() for actions in verbs.values() for action in actions}
    assert grants(control_plane, stack_role, names)["tenant queues"] == needed
