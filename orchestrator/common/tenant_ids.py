"""Tenant ids. :mod:`orchestrator.tenants.names` derives the stack's name from them.

A tenant id is used in table keys, stack names, execution names, tags and policies. :meth:`TenantId.parse` therefore
accepts only a few characters. Input is parsed once, where it enters Berth; all other code takes a ``TenantId``.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from orchestrator.common.errors import InvalidTenantId

TENANT_ID_MAX_LENGTH = 40
"""A UUID fits, and so does every name that is derived from the id: see ``tests/unit/test_tenants.py``."""

TENANT_ID_PATTERN = r"^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}[A-Za-z0-9])?$"
"""Letters, digits and inner dashes. The pattern has no look-around, because CloudFormation and JSON schemas use it."""

WARM_PREFIX = "berth-warm-"
"""The ids of stacks that are kept ready begin with this. Nobody can ask for their queues: :mod:`orchestrator.pool`."""

_TENANT_ID = re.compile(TENANT_ID_PATTERN, re.ASCII)
_DIGEST_LENGTH = 8


@dataclass(frozen=True, slots=True)
class TenantId:
    """A valid tenant id. Ids that differ only by case are different tenants."""

    value: str

    @classmethod
    def parse(cls, value: object) -> TenantId:
        if not isinstance(value, str):
            raise InvalidTenantId(f"The tenant id must be a string, not {_json_type(value)}.")
        if not value:
            raise InvalidTenantId("The tenant id is empty.")
        if len(value) > TENANT_ID_MAX_LENGTH:
            raise InvalidTenantId(
                f"The tenant id has {len(value)} characters; at most {TENANT_ID_MAX_LENGTH} are allowed."
            )
        # fullmatch, because `$` alone would accept a trailing newline.
        if not _TENANT_ID.fullmatch(value):
            raise InvalidTenantId(
                f"The tenant id {value!a} is not valid: use letters, digits and dashes, "
                "beginning and ending with a letter or digit."
            )
        return cls(value)

    def __str__(self) -> str:
        return self.value

    @property
    def is_warm(self) -> bool:
        """True for a stack that is kept ready, and is no tenant's yet."""
        return self.value.startswith(WARM_PREFIX)

    def check_is_tenants(self) -> None:
        """Raise :class:`InvalidTenantId` if this is the id of a stack that is kept ready."""
        if self.is_warm:
            raise InvalidTenantId(
                f"{self} is no tenant: ids that begin with {WARM_PREFIX} belong to stacks that are kept ready for new "
                "tenants (berth:warmPool). The pool creates, replaces and deletes them. Nothing was changed. "
                "`berth doctor` shows how the pool stands."
            )

    @property
    def slug(self) -> str:
        """The id, followed by a digest of the id.

        AWS compares some names without regard to case; the digest keeps `Acme` and `acme` apart there.
        """
        return f"{self.value}-{hashlib.sha256(self.value.encode()).hexdigest()[:_DIGEST_LENGTH]}"

    @classmethod
    def of_slug(cls, slug: str) -> TenantId:
        tenant = cls.parse(slug[: -_DIGEST_LENGTH - 1])
        if tenant.slug != slug:
            raise InvalidTenantId(f"{slug!a} does not end with the digest of a tenant id.")
        return tenant


def _json_type(value: object) -> str:
    return {type(None): "null", bool: "a boolean", int: "a number", float: "a number", list: "a list"}.get(
        type(value), "an object"
    )
