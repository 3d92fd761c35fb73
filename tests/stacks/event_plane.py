"""Reading the template of the event plane: resources by type, variables of functions, and rows in permissions."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def properties(template: Json, resource_type: str) -> list[Json]:
    return [each["Properties"] for each in template["Resources"].values() if each["Type"] == resource_type]


def the_only(template: Json, resource_type: str) -> tuple[str, Json]:
    (found,) = ((name, each) for name, each in template["Resources"].items() if each["Type"] == resource_type)
    return found


def variables_of(template: Json, function: str) -> dict[str, Any]:
    variables: dict[str, Any] = template["Resources"][function]["Properties"]["Environment"]["Variables"]
    return variables


def of_tenants(*rows: str) -> str:
    return f"the tenants' table, rows {' and '.join(rows)}"


def of_events(*rows: str) -> str:
    return f"the events' table, rows {' and '.join(rows)}"
