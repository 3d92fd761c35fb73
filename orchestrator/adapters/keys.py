"""The table's key shapes. Nowhere else is a key put together or taken apart.

| row      | pk               | sk                                                       |
|----------|------------------|----------------------------------------------------------|
| metadata | TENANT_ID#{id}   | METADATA                                                 |
| audit    | TENANT_ID#{id}   | AUDIT#CREATE#{version}, AUDIT#UPDATE#{version}, AUDIT#DELETE; once AUDIT#CREATE |
| history  | TENANT_ID#{id}   | HISTORY#{time}#{attempt}#{status}                        |
| lock     | TENANT_ID#{id}   | LOCK                                                     |
| release  | RELEASE          | VERSION#{version}                                        |

The index `Listing` holds published tenants by version and unfinished or failed operations by time:

| row                           | ListingKey         | ListingSort            |
|-------------------------------|--------------------|------------------------|
| published metadata            | TENANT             | {version}#{tenant id}  |
| audit, if Started or Failure  | OPERATION#{status} | {updated}#{tenant id}  |
"""

from __future__ import annotations

from datetime import datetime

from orchestrator.records import Attempt, Operation, Status, timestamp
from orchestrator.tenants import TenantId

LISTING_INDEX = "Listing"
LISTING_TENANTS = "TENANT"

METADATA = "METADATA"
LOCK = "LOCK"
AUDIT_PREFIX = "AUDIT#"
HISTORY_PREFIX = "HISTORY#"
RELEASES = "RELEASE"

_TENANT_PREFIX = "TENANT_ID#"

Key = dict[str, dict[str, str]]


def key(pk: str, sk: str) -> Key:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def tenant_pk(tenant: TenantId) -> str:
    return f"{_TENANT_PREFIX}{tenant}"


def tenant_of(pk: str) -> TenantId:
    return TenantId.parse(pk.removeprefix(_TENANT_PREFIX))


def metadata_key(tenant: TenantId) -> Key:
    return key(tenant_pk(tenant), METADATA)


def lock_key(tenant: TenantId) -> Key:
    return key(tenant_pk(tenant), LOCK)


def audit_key(attempt: Attempt) -> Key:
    version = "" if attempt.operation is Operation.DELETE else f"#{attempt.version}"
    return key(tenant_pk(attempt.tenant), f"{AUDIT_PREFIX}{attempt.operation}{version}")


def operation_of(audit_sk: str) -> tuple[Operation, str | None]:
    """Operation and version, from an audit row's sort key. `AUDIT#CREATE` is from before keys had versions."""
    operation, _, version = audit_sk.removeprefix(AUDIT_PREFIX).partition("#")
    return Operation(operation), version or None


def history_key(attempt: Attempt, at: datetime, status: Status) -> Key:
    return key(tenant_pk(attempt.tenant), f"{HISTORY_PREFIX}{timestamp(at)}#{attempt.name}#{status}")


def release_key(version: str) -> Key:
    return key(RELEASES, f"VERSION#{version}")


def listed_tenant(tenant: TenantId, version: str) -> tuple[str, str]:
    return LISTING_TENANTS, f"{version}#{tenant}"


def listed_operation(tenant: TenantId, status: Status, at: datetime) -> tuple[str, str]:
    return listing_of_operations(status), f"{timestamp(at)}#{tenant}"


def listing_of_operations(status: Status) -> str:
    return f"OPERATION#{status}"
