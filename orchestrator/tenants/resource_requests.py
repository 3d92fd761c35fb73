"""The events that CloudFormation sends for custom resources, validated and parsed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.common.errors import InvalidRequest, InvalidTenantId
from orchestrator.common.input_limits import is_utf8
from orchestrator.common.stack_arns import Location, StackArn
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.validation import LABELS, SECRET, TENANT_ID, TEXT, VERSION, Schema, object_of, valid
from orchestrator.releases.template_contract import (
    MAX_NOTES,
    METADATA_TYPE,
    QUEUE_ARN,
    QUEUE_URL,
    TENANT_PARAMETER,
)
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Queue, Request
from orchestrator.tenants.stack_resources import StackResource

_IDS = ("RequestType", "StackId", "RequestId", "LogicalResourceId", "PhysicalResourceId")
_MAX_ID_LENGTH = 1_000
"""The maximum length of these ids. The stack's and the resource's id together are the requester of a tenant."""
_ID = {"type": "string", "minLength": 1, "maxLength": _MAX_ID_LENGTH}
_ADDRESS = {**SECRET, "pattern": "^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?([/?][!-~]*)?$"}
"""The URL is signed: anybody who knows it can send a response."""
_ANSWERABLE = Schema(object_of({"ResponseURL": _ADDRESS}))

_MAX_CHARACTERS = 200_000
"""The maximum length of an event as JSON. The input of the state machine that handles it is limited to 256 KiB."""


class Kind(StrEnum):
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"


class OnDelete(StrEnum):
    """The property that decides whether the tenant is deleted together with the resource."""

    RETAIN = "retain"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    kind: Kind
    tenant: TenantId
    stack: StackArn
    queue: Queue
    """The queue in the event, which may be forged. CloudFormation's list of the stack's resources has the real one."""


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    version: str
    digest: str
    source_key: str
    notes: str = ""
    key_changed: bool = False
    """True if the encryption key of the bucket of releases has changed."""


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    version: str
    version_changed: bool
    """True if the version differs from that of the last deployment, or if there was none."""


OWN_TYPES = frozenset({METADATA_TYPE, "Custom::Release", "Custom::Rollout", "Custom::ApiProof"})
"""The types of Berth's own resources, in tenants' stacks and in the control plane's."""


def may_be_tenant_queue(resource_type: str) -> bool:
    """True if a resource of this type can be a Custom::TenantQueue. The author of the template chooses the type."""
    is_custom = resource_type.startswith("Custom::") or resource_type == "AWS::CloudFormation::CustomResource"
    return is_custom and resource_type not in OWN_TYPES


@dataclass(frozen=True, slots=True)
class Claim:
    """The change of a resource that an event claims. The event may be forged."""

    kind: Kind
    resource: StackResource
    request_id: str
    physical_id: str | None
    tenant_id: str | None
    """The tenant id in the event, if it is a string."""


@dataclass(frozen=True, slots=True)
class TenantQueueRequest:
    kind: Kind
    tenant: TenantId
    request: Request
    on_delete: OnDelete
    replaces: TenantId | None
    """Update: the resource's former tenant, if that was another one."""
    unpin: bool = False
    """Update: the resource had a version before, and has none now."""


def _custom_resource(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Any:
    return Schema(
        object_of(
            {
                "RequestType": {"enum": [kind.value for kind in Kind]},
                "StackId": _ID,
                # The id becomes the name of an execution.
                "RequestId": {"type": "string", "pattern": "^[A-Za-z0-9-]{1,64}$"},
                "LogicalResourceId": _ID,
                "ResponseURL": _ADDRESS,
                "ResourceProperties": object_of(required, optional),
            },
            {"PhysicalResourceId": _ID, "OldResourceProperties": {"type": "object"}},
        )
    )


_CLAIM = _custom_resource({})
_TENANT_METADATA = _custom_resource({TENANT_PARAMETER: TENANT_ID, QUEUE_ARN: TEXT, QUEUE_URL: TEXT})
_RELEASE = _custom_resource(
    {
        "Version": VERSION,
        "Digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "SourceKey": TEXT,
    },
    {"Notes": {"type": "string", "maxLength": MAX_NOTES}, "KmsKeyArn": TEXT},
)
_CURRENT_RELEASE = _custom_resource({})
_ROLLOUT = _custom_resource({"Version": VERSION})
_API_PROOF = _custom_resource({"Generation": {"type": "string", "pattern": "^[0-9]{1,9}$"}})
_TENANT_QUEUE = _custom_resource(
    {"TenantId": TENANT_ID},
    {"Version": VERSION, "Labels": LABELS, "OnDelete": {"enum": [each.value for each in OnDelete]}},
)


def answerable(event: object) -> Mapping[str, Any]:
    """Any event with a valid response URL, whatever else is wrong with it. Invalid ids are left out."""
    given = event if isinstance(event, dict) else {}
    valid(_ANSWERABLE, {"ResponseURL": given.get("ResponseURL")})
    return {name: value for name, value in given.items() if name not in _IDS or _is_id(value)}


def _is_id(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_ID_LENGTH and is_utf8(value)


def parse_metadata_request(event: object, *, location: Location, names: Names) -> MetadataRequest:
    """The event must come from a stack with the tenant's stack name, in Berth's account and region.

    It may also come from a stack with an earlier system's name, or from one that was kept ready. The caller checks that
    it is recorded as the tenant's.
    """
    checked = valid(_TENANT_METADATA, event)
    properties = checked["ResourceProperties"]
    tenant, stack = TenantId.parse(properties[TENANT_PARAMETER]), StackArn.parse(checked["StackId"])
    named = names.is_stack_of(tenant, stack.name) or names.is_legacy(stack.name) or names.is_warm(stack.name)
    if stack.location != location or not named:
        raise InvalidRequest(f"StackId: {checked['StackId']!a} is not the stack of tenant {tenant}")
    return MetadataRequest(
        kind=Kind(checked["RequestType"]),
        tenant=tenant,
        stack=stack,
        queue=Queue(properties[QUEUE_ARN], properties[QUEUE_URL]),
    )


def parse_release_request(event: object) -> ReleaseRequest:
    checked = valid(_RELEASE, event)
    properties, before = checked["ResourceProperties"], checked.get("OldResourceProperties")
    return ReleaseRequest(
        version=properties["Version"],
        digest=properties["Digest"],
        source_key=properties["SourceKey"],
        notes=properties.get("Notes", ""),
        key_changed=before is not None and before.get("KmsKeyArn") != properties.get("KmsKeyArn"),
    )


def is_created(event: object) -> bool:
    """True if the deployment creates the resource, and False if it only updates it."""
    return Kind(valid(_CURRENT_RELEASE, event)["RequestType"]) is Kind.CREATE


def wants_new_proof(event: object) -> bool:
    """True if the deployment has no proof yet, or requests another generation of it."""
    checked = valid(_API_PROOF, event)
    before = checked.get("OldResourceProperties", {}).get("Generation")
    return bool(before != checked["ResourceProperties"]["Generation"])


def parse_rollout_request(event: object) -> RolloutRequest:
    checked = valid(_ROLLOUT, event)
    version = checked["ResourceProperties"]["Version"]
    return RolloutRequest(version, version_changed=checked.get("OldResourceProperties", {}).get("Version") != version)


def parse_claim(event: object, here: Location) -> Claim:
    """Validate what must be right before CloudFormation is asked about an event.

    ``here`` is the account and region where Berth is deployed.
    """
    checked = valid(_CLAIM, event)
    if len(json.dumps(checked)) > _MAX_CHARACTERS:
        raise InvalidRequest(f"the event is too large: at most {_MAX_CHARACTERS} characters are allowed")
    resource = StackResource.parse(checked["StackId"], checked["LogicalResourceId"])
    if resource.stack.location != here:
        raise InvalidRequest(f"StackId: {checked['StackId']!a} is not a stack of this account and region")
    tenant_id = checked["ResourceProperties"].get("TenantId")
    return Claim(
        kind=Kind(checked["RequestType"]),
        resource=resource,
        request_id=checked["RequestId"],
        physical_id=checked.get("PhysicalResourceId"),
        tenant_id=tenant_id if isinstance(tenant_id, str) else None,
    )


def parse_tenant_queue_request(event: object) -> TenantQueueRequest:
    checked = valid(_TENANT_QUEUE, event)
    properties = checked["ResourceProperties"]
    before = checked.get("OldResourceProperties", {})
    tenant = TenantId.parse(properties["TenantId"])
    tenant.check_is_tenants()
    # The requester is the resource itself, so that it can later delete the tenant that it has created.
    resource = StackResource.parse(checked["StackId"], checked["LogicalResourceId"])
    # When a change of the tenant is rolled back, the resource still has this tenant's id, so nothing is replaced.
    is_rollback = checked.get("PhysicalResourceId") == tenant.value
    former = _former_tenant(tenant, before.get("TenantId"))
    return TenantQueueRequest(
        kind=Kind(checked["RequestType"]),
        tenant=tenant,
        request=Request(
            by=str(resource),
            resource=resource,
            labels=properties.get("Labels"),
            pin=properties.get("Version"),
        ),
        on_delete=OnDelete(properties.get("OnDelete", OnDelete.RETAIN)),
        replaces=None if is_rollback else former,
        unpin=former is None and "Version" in before and "Version" not in properties,
    )


def _former_tenant(tenant: TenantId, before: object) -> TenantId | None:
    """The resource's former tenant, if that was another one.

    The former id is invalid when CloudFormation rolls back an update that was refused because of that id.
    """
    try:
        former = TenantId.parse(before)
    except InvalidTenantId:
        return None
    return former if former != tenant else None
