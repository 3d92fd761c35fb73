"""The table's keys. Only this module builds and parses them.

| row      | pk               | sk                                                       |
|----------|------------------|----------------------------------------------------------|
| metadata | TENANT_ID#{id}   | METADATA                                                 |
| audit    | TENANT_ID#{id}   | AUDIT#CREATE#{version}, AUDIT#UPDATE#{version}, AUDIT#DELETE; in old rows AUDIT#CREATE |
| lock     | TENANT_ID#{id}   | LOCK                                                     |
| history  | HISTORY#{id}     | {time}#{attempt}#{status}#{digest}, {time}#{kind of change}#{digest} |
| history of a rollout | HISTORY#ROLLOUT#{id} | {time}#{order}#{digest}                     |
| release  | RELEASE          | VERSION#{version}                                        |
| state of the releases | RELEASE_STATE | STATE                                          |
| history of the releases' state | HISTORY#RELEASE#STATE | {time}#{order}#{digest}       |
| review   | REVIEW           | {key of the move}                                        |
| rollout  | ROLLOUT#{id}     | PLAN                                                     |
| stage    | ROLLOUT#{id}     | STAGE#{number, two digits}                               |
| outcome  | ROLLOUT#{id}     | TENANT#{tenant id}                                       |
| what a dry run has found | ROLLOUT#{id} | REVIEWS                                      |
| registry | ROLLOUTS         | REGISTRY                                                 |
| pace     | PACE             | CLOUDFORMATION                                           |
| turns of creates | CREATE_TURNS | TURNS                                                |
| number of the latest ticket | CREATE_TURNS | NUMBER                                    |
| ticket of a waiting create | CREATE_TURNS | TICKET#{number, twelve digits}             |
| members of the pool | POOL | MEMBERS                                                  |
| reconciliation | RECONCILIATION | {id}                                                 |
| counts of the fleet | RECONCILIATION | fleet-counts                                    |
| unfinished surveys | RECONCILIATION | unfinished-surveys                               |
| position of a survey | RECONCILIATION | {id}#CHECKPOINT                                |
| stacks of a survey | RECONCILIATION | {id}#STACKS#{list}#{number}                      |
| creates  | CREATES#{digest} | WINDOW                                                   |
| number of tenants | TENANT_COUNT | COUNT                                               |
| change of a tenant's place in the index | RELISTED | {time}#{tenant id}                |

History has its own partitions, so that permissions can forbid changing it. The digest covers all other attributes of
the row, so two different entries never have the same key, and a row that was changed later no longer matches its
digest.

The index `Listing` holds tenants by state and version, unfinished operations by time, rollouts by id (which begins
with the time), and the failed tenants of each rollout:

| row                       | ListingKey          | ListingSort            |
|---------------------------|---------------------|------------------------|
| metadata                  | TENANT#{state}      | {version}#{tenant id}  |
| audit of a done delete    | TENANT#DELETED      | #{tenant id}           |
| audit, if Started         | OPERATION#Started   | {updated}#{tenant id}  |
| rollout                   | ROLLOUT             | {id}                   |
| outcome, if FAILED        | ROLLOUT#{id}#FAILED | {tenant id}            |
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp, timestamp

if TYPE_CHECKING:
    from orchestrator.tenants.records import Operation, TenantState

LISTING_INDEX = "Listing"
EXPIRY = "ttl"
"""The attribute with the time, in seconds, after which DynamoDB deletes the row."""
UNFINISHED_OPERATIONS = "OPERATION#Started"

METADATA = "METADATA"
LOCK = "LOCK"
AUDIT_PREFIX = "AUDIT#"
TENANT_PREFIX = "TENANT_ID#"
HISTORY_PREFIX = "HISTORY#"
RELEASES = "RELEASE"
RELEASE_STATE = "RELEASE_STATE"
REVIEWS = "REVIEW"
ROLLOUT_PREFIX = "ROLLOUT#"
PLAN = "PLAN"
STAGE_PREFIX = "STAGE#"
OUTCOME_PREFIX = "TENANT#"
LISTED_ROLLOUTS = "ROLLOUT"
CREATE_TURNS = "CREATE_TURNS"
TICKET_PREFIX = "TICKET#"
RECONCILIATIONS = "RECONCILIATION"
CREATES_PREFIX = "CREATES#"
RELISTINGS = "RELISTED"

_DIGEST_LENGTH = 32

Key = dict[str, dict[str, str]]


def key(pk: str, sk: str) -> Key:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def tenant_pk(tenant: TenantId) -> str:
    return f"{TENANT_PREFIX}{tenant}"


def tenant_of(pk: str) -> TenantId:
    return TenantId.parse(pk.removeprefix(TENANT_PREFIX))


def metadata_key(tenant: TenantId) -> Key:
    return key(tenant_pk(tenant), METADATA)


def lock_key(tenant: TenantId) -> Key:
    return key(tenant_pk(tenant), LOCK)


def audit_sk(operation: Operation, version: str | None) -> str:
    """The version is ``None`` for a delete, and for a create from before keys had versions."""
    return f"{AUDIT_PREFIX}{operation}" + ("" if version is None else f"#{version}")


def operation_of(audit_sk: str) -> tuple[Operation, str | None]:
    """Operation and version, from an audit row's sort key. `AUDIT#CREATE` is from before keys had versions.

    `AUDIT#CREATE#` is another key: its version is the empty text.
    """
    # Imported here, because the functions of the event plane use this module, and need no records of tenants.
    from orchestrator.tenants.records import Operation

    operation, separator, version = audit_sk.removeprefix(AUDIT_PREFIX).partition("#")
    return Operation(operation), version if separator else None


def history_pk(tenant: TenantId) -> str:
    return f"{HISTORY_PREFIX}{tenant}"


def history_key(tenant: TenantId, at: datetime, what: str, fields: Mapping[str, Any]) -> Key:
    return key(history_pk(tenant), _history_sk(at, what, fields))


def rollout_history_pk(rollout: str) -> str:
    """It cannot be a tenant's partition, because tenant ids contain no #."""
    return f"{HISTORY_PREFIX}{rollout_pk(rollout)}"


def rollout_history_key(rollout: str, at: datetime, order: str, fields: Mapping[str, Any]) -> Key:
    return key(rollout_history_pk(rollout), _history_sk(at, order, fields))


def rollout_of_history(pk: str) -> str:
    return rollout_of(pk.removeprefix(HISTORY_PREFIX))


def _history_sk(at: datetime, what: str, fields: Mapping[str, Any]) -> str:
    return f"{timestamp(at)}#{what}#{_digest(fields)}"


def moment_of_history(sk: str) -> datetime | None:
    """The time in the sort key of a history row; ``None`` if there is none."""
    try:
        return parse_timestamp(sk.partition("#")[0])
    except (ValueError, OverflowError):
        return None


def is_altered(row: Mapping[str, Any]) -> bool:
    """True for a history row that was changed after it was appended."""
    digest: str = row["sk"]["S"].rpartition("#")[2]
    return digest != _digest({name: value for name, value in row.items() if name not in ("pk", "sk")})


def _digest(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:_DIGEST_LENGTH]


def tenant_of_history(pk: str) -> TenantId:
    return TenantId.parse(pk.removeprefix(HISTORY_PREFIX))


def release_key(version: str) -> Key:
    return key(RELEASES, f"VERSION#{version}")


def release_state_key() -> Key:
    return key(RELEASE_STATE, "STATE")


def release_history_pk() -> str:
    """It cannot be a tenant's partition, because tenant ids contain no #."""
    return f"{HISTORY_PREFIX}{RELEASES}#STATE"


def release_history_key(at: datetime, order: str, fields: Mapping[str, Any]) -> Key:
    return key(release_history_pk(), _history_sk(at, order, fields))


def review_key(move: str) -> Key:
    return key(REVIEWS, move)


def listed_tenants(state: TenantState) -> str:
    return f"TENANT#{state}"


def listed_tenant(tenant: TenantId, state: TenantState, version: str | None) -> tuple[str, str]:
    return listed_tenants(state), f"{version_prefix(version)}{tenant}"


def version_prefix(version: str | None) -> str:
    """The beginning of the positions of all tenants at that version."""
    return f"{version or ''}#"


def end_of_version(version: str) -> str:
    """A text after the positions of all tenants at that version, and before those of later versions."""
    return f"{version_prefix(version)}~"


def version_of_position(position: str) -> str:
    """The version of the tenant at that position; empty if the tenant has no version."""
    return position.rpartition("#")[0]


def listing_position(state: TenantState, position: str) -> Key:
    """The key, in the index and in the table, of the tenant at that position. The next page starts after it."""
    from orchestrator.tenants.records import TenantState

    tenant = position.rpartition("#")[2]
    row = key(f"{TENANT_PREFIX}{tenant}", f"{AUDIT_PREFIX}DELETE" if state is TenantState.DELETED else METADATA)
    return row | {"ListingKey": {"S": listed_tenants(state)}, "ListingSort": {"S": position}}


def unfinished_operation(tenant: TenantId, at: datetime) -> tuple[str, str]:
    return UNFINISHED_OPERATIONS, f"{timestamp(at)}#{tenant}"


# Rollouts


def rollout_pk(rollout: str) -> str:
    return f"{ROLLOUT_PREFIX}{rollout}"


def rollout_of(pk: str) -> str:
    return pk.removeprefix(ROLLOUT_PREFIX)


def plan_key(rollout: str) -> Key:
    return key(rollout_pk(rollout), PLAN)


def stage_key(rollout: str, number: int) -> Key:
    return key(rollout_pk(rollout), f"{STAGE_PREFIX}{number:02}")


def stage_of(sk: str) -> int:
    return int(sk.removeprefix(STAGE_PREFIX))


def outcome_key(rollout: str, tenant: TenantId) -> Key:
    return key(rollout_pk(rollout), f"{OUTCOME_PREFIX}{tenant}")


def reviews_key(rollout: str) -> Key:
    return key(rollout_pk(rollout), "REVIEWS")


def tenant_of_outcome(sk: str) -> TenantId:
    return TenantId.parse(sk.removeprefix(OUTCOME_PREFIX))


def registry_key() -> Key:
    return key("ROLLOUTS", "REGISTRY")


def pace_key() -> Key:
    return key("PACE", "CLOUDFORMATION")


def create_turns_key() -> Key:
    return key(CREATE_TURNS, "TURNS")


def ticket_number_key() -> Key:
    return key(CREATE_TURNS, "NUMBER")


def ticket_key(number: int) -> Key:
    return key(CREATE_TURNS, f"{TICKET_PREFIX}{number:012}")


def ticket_of(sk: str) -> int:
    return int(sk.removeprefix(TICKET_PREFIX))


def pool_key() -> Key:
    return key("POOL", "MEMBERS")


def creates_key(caller: str) -> Key:
    """Every caller has its own partition, so that no caller can slow another one down. The digest bounds its length."""
    return key(f"{CREATES_PREFIX}{hashlib.sha256(caller.encode()).hexdigest()}", "WINDOW")


def tenant_count_key() -> Key:
    return key("TENANT_COUNT", "COUNT")


# Reconciliations


AFTER_REQUESTED = ":"
"""A text after the ids of all requested reconciliations, which begin with digits, and before those of other rows."""


def reconciliation_key(reconciliation: str) -> Key:
    return key(RECONCILIATIONS, reconciliation)


def fleet_counts_key() -> Key:
    """The reconciliation keeps the counts among its own rows. No reconciliation has this id."""
    return key(RECONCILIATIONS, "fleet-counts")


def unfinished_surveys_key() -> Key:
    return key(RECONCILIATIONS, "unfinished-surveys")


def checkpoint_key(reconciliation: str) -> Key:
    return key(RECONCILIATIONS, f"{reconciliation}#CHECKPOINT")


def surveyed_stacks_key(reconciliation: str, list_id: str, number: int) -> Key:
    """Scheduled surveys have the same id, and a survey may be invoked twice, so the key has the list's id, too."""
    return key(RECONCILIATIONS, f"{reconciliation}#STACKS#{list_id}#{number:04}")


def relisting_key(tenant: TenantId, at: datetime) -> Key:
    return key(RELISTINGS, f"{timestamp(at)}#{tenant}")


def relisting_of(sk: str) -> tuple[TenantId, datetime]:
    at, _, tenant = sk.partition("#")
    return TenantId.parse(tenant), parse_timestamp(at)


def listed_rollout(rollout: str) -> tuple[str, str]:
    return LISTED_ROLLOUTS, rollout


def listed_failures(rollout: str) -> str:
    return f"{rollout_pk(rollout)}#FAILED"


def listed_failure(rollout: str, tenant: TenantId) -> tuple[str, str]:
    return listed_failures(rollout), tenant.value
