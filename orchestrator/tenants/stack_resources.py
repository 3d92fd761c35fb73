"""A resource in another team's stack, as a typed value: it requests a tenant with ``Custom::TenantQueue``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.stack_arns import StackArn

LOGICAL_ID_PATTERN = r"^[A-Za-z0-9]{1,255}$"
"""CloudFormation's rule for the logical ids of resources in a template."""

_LOGICAL_ID = re.compile(LOGICAL_ID_PATTERN, re.ASCII)


@dataclass(frozen=True, slots=True)
class StackResource:
    """A stack, and the logical id of a resource in its template."""

    stack: StackArn
    logical_id: str

    @classmethod
    def parse(cls, stack_id: str, logical_id: str) -> StackResource:
        stack = StackArn.parse(stack_id)
        if not _LOGICAL_ID.fullmatch(logical_id):
            raise InvalidRequest(f"LogicalResourceId: {logical_id[:300]!a} is not the logical id of a resource")
        return cls(stack, logical_id)

    def stands_for(self, other: StackResource) -> bool:
        """True for the same resource in a stack of the same name: a stack that is deployed again has another id."""
        here, there = self.stack, other.stack
        same_stack = (here.location, here.name) == (there.location, there.name)
        return same_stack and self.logical_id == other.logical_id

    def __str__(self) -> str:
        return f"{self.stack}/{self.logical_id}"


Requester = str | StackResource
"""The requester of an operation: a caller of the API, by name, or a resource. A name never equals a resource."""


LOGICAL_ID = {"type": "string", "pattern": LOGICAL_ID_PATTERN}
