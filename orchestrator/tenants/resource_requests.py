"""What CloudFormation sends for custom resources, checked and in the domain's words."""

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
from orchestrator.releases.template_contract import METADATA_TYPE, QUEUE_ARN, QUEUE_URL, TENANT_PARAMETER
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Queue, Request
from orchestrator.tenants.stack_resources import StackResource

_IDS = ("RequestType", "StackId", "RequestId", "LogicalResourceId", "PhysicalResourceId")
_MAX_ID_LENGTH = 1_000
"""As many characters as any of them has. A stack's and a resource's together are who asked for a tenant."""
_ID = {"type": "string", "minLength": 1, "maxLength": _MAX_ID_LENGTH}
_ADDRESS = {**SECRET, "pattern": "^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?([/?][!-~]*)?$"}
"""It is signed: whoever knows it can answer in our place."""
_ANSWERABLE = Schema(object_of({"ResponseURL": _ADDRESS}))

_MAX_CHARACTERS = 200_000
"""Of an event as JSON. The machine that it is handed to takes no more than 256 KiB with all that is around it."""

MAX_NOTES = 4_000
"""As many characters as are kept of what the changelog says about a release."""


class Kind(StrEnum):
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"


class OnDelete(StrEnum):
    """What becomes of the tenant when the resource goes."""

    RETAIN = "retain"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    kind: Kind
    tenant: TenantId
    stack: StackArn
    queue: Queue
    """What the resource was given. Anybody may have sent it: CloudFormation is asked which queue the stack has."""


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    version: str
    digest: str
    source_key: str
    notes: str = ""
    another_key: bool = False
    """The bucket of releases is encrypted with another key than before."""


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    version: str
    another_version: bool
    """Than that of the last deployment, if there was one."""


OWN_TYPES = frozenset({METADATA_TYPE, "Custom::Release", "Custom::Rollout", "Custom::ApiProof"})
"""The types of Berth's own resources, in tenants' stacks and in the control plane's."""


def may_be_tenant_queue(resource_type: str) -> bool:
    """Whether a resource of this type can be a Custom::TenantQueue. Whoever writes the template names the type."""
    is_custom = resource_type.startswith("Custom::") or resource_type == "AWS::CloudFormation::CustomResource"
    return is_custom and resource_type not in OWN_TYPES


@dataclass(frozen=True, slots=True)
class Claim:
    """Which resource of which stack asks for what, as an event says that whoever invokes a function can make up."""

    kind: Kind
    resource: StackResource
    request_id: str
    physical_id: str | None
    tenant_id: str | None
    """The tenant that the event names, if that is a text."""


@dataclass(frozen=True, slots=True)
class TenantQueueRequest:
    kind: Kind
    tenant: TenantId
    request: Request
    on_delete: OnDelete
    replaces: TenantId | None
    """Update: the tenant whose queue it was before, if that is another."""
    unpin: bool = False
    """Update: the resource named a version before, and names none any more."""


def _custom_resource(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Any:
    return Schema(
        object_of(
            {
                "RequestType": {"enum": [kind.value for kind in Kind]},
                "StackId": _ID,
                # An execution is named after it.
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
_ROLLOUT = _custom_resource({"Version": VERSION})
_API_PROOF = _custom_resource({"Generation": {"type": "string", "pattern": "^[0-9]{1,9}$"}})
_TENANT_QUEUE = _custom_resource(
    {"TenantId": TENANT_ID},
    {"Version": VERSION, "Labels": LABELS, "OnDelete": {"enum": [each.value for each in OnDelete]}},
)


def answerable(event: object) -> Mapping[str, Any]:
    """Any event that says where the answer goes, whatever else is wrong with it. An id that is none is left out."""
    given = event if isinstance(event, dict) else {}
    valid(_ANSWERABLE, {"ResponseURL": given.get("ResponseURL")})
    return {name: value for name, value in given.items() if name not in _IDS or _is_id(value)}


def _is_id(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_ID_LENGTH and is_utf8(value)


def parse_metadata_request(event: object, *, location: Location, names: Names) -> MetadataRequest:
    """Only a tenant's own stack may say that it has a queue, or none any more: one of its name, where Berth is.

    Or one that an earlier system has named. Whether that is the tenant's is on record.
    """
    checked = valid(_TENANT_METADATA, event)
    properties = checked["ResourceProperties"]
    tenant, stack = TenantId.parse(properties[TENANT_PARAMETER]), StackArn.parse(checked["StackId"])
    named = names.is_stack_of(tenant, stack.name) or names.is_legacy(stack.name)
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
        another_key=before is not None and before.get("KmsKeyArn") != properties.get("KmsKeyArn"),
    )


def asks_for_another_proof(event: object) -> bool:
    """Whether the deployment has no proof yet, or says that it wants another one."""
    checked = valid(_API_PROOF, event)
    before = checked.get("OldResourceProperties", {}).get("Generation")
    return bool(before != checked["ResourceProperties"]["Generation"])


def parse_rollout_request(event: object) -> RolloutRequest:
    checked = valid(_ROLLOUT, event)
    version = checked["ResourceProperties"]["Version"]
    return RolloutRequest(version, another_version=checked.get("OldResourceProperties", {}).get("Version") != version)


def parse_claim(event: object, here: Location) -> Claim:
    """All that must be right before CloudFormation is asked about an event. ``here`` is where Berth is deployed."""
    checked = valid(_CLAIM, event)
    if len(json.dumps(checked)) > _MAX_CHARACTERS:
        raise InvalidRequest(f"the event: it is too large; at most {_MAX_CHARACTERS} characters are allowed")
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
    # The resource itself asks: the same one that may later ask to delete what it had created.
    resource = StackResource.parse(checked["StackId"], checked["LogicalResourceId"])
    # When a change of the tenant has failed, CloudFormation undoes it: the resource has been that tenant all the time.
    undone = checked.get("PhysicalResourceId") == tenant.value
    another = _another(tenant, before.get("TenantId"))
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
        replaces=None if undone else another,
        unpin=another is None and "Version" in before and "Version" not in properties,
    )


def _another(tenant: TenantId, before: object) -> TenantId | None:
    """The tenant before, if that is another. An id that was refused was none: undoing such an update names it here."""
    try:
        replaced = TenantId.parse(before)
    except InvalidTenantId:
        return None
    return replaced if replaced != tenant else None
