"""Read the policies of a synthesised template."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

Json = dict[str, Any]
Grants = dict[str, set[str]]


def statements(template: Json) -> Iterator[tuple[str, Json]]:
    """Every statement of every role's policies, with the role that it is attached to."""
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::IAM::Policy":
            (role,) = resource["Properties"]["Roles"]
            for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
                yield role["Ref"], statement


def grants(template: Json, role: str, names: dict[str, str]) -> Grants:
    """The actions that a role may use, by the name of the resource."""
    found: Grants = defaultdict(set)
    for holder, statement in statements(template):
        if holder == role:
            for label in labels(statement, names):
                found[label] |= set(listed(statement["Action"]))
    return dict(found)


def labels(statement: Json, names: dict[str, str]) -> Iterator[str]:
    for resource in listed(statement["Resource"]):
        arn = spelled(resource)
        yield names.get(arn, arn) + _condition(statement.get("Condition"), names)


def _condition(condition: Json | None, names: dict[str, str]) -> str:
    match condition:
        case None:
            return ""
        case {
            "ForAllValues:StringLike": {"dynamodb:LeadingKeys": rows},
            "StringEquals": {"dynamodb:Select": "COUNT"},
        }:
            return f", rows {' and '.join(rows)}, to count them"
        case {
            "ForAllValues:StringEquals": {"dynamodb:Attributes": attributes},
            "StringEquals": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
        }:
            return f", all rows, only {', '.join(attributes)}"
        case {
            "ForAllValues:StringLike": {"dynamodb:LeadingKeys": rows},
            "ForAllValues:StringEquals": {"dynamodb:Attributes": attributes},
            "Null": {"dynamodb:LeadingKeys": "false", "dynamodb:Attributes": "false"},
            "StringEqualsIfExists": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
        }:
            return f", rows {' and '.join(rows)}, only {', '.join(attributes)}"
        case {
            "ForAllValues:StringLike": {"dynamodb:LeadingKeys": rows},
            "Null": {"dynamodb:LeadingKeys": "false"},
        }:
            return f", rows {' and '.join(rows)}"
        case {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": rows}} if len(condition) == 1:
            return f", rows {' and '.join(rows)}"
        case {"Null": {"kms:EncryptionContext:tenant": "false", "kms:EncryptionContext:epoch": "false"}}:
            return ", for a tenant's epoch"
        case {"StringEquals": {"cloudformation:RoleArn": role}}:
            return f", with {names[spelled(role)]}"
        case {"StringEquals": {"iam:PassedToService": "cloudformation.amazonaws.com"}}:
            return ", to CloudFormation"
    return f", if {condition}"


def on_partition(template: Json, partition: str) -> Grants:
    """The actions that each role may use on a partition of the table or of its index."""
    found: Grants = defaultdict(set)
    for role, statement in statements(template):
        actions = {action for action in listed(statement["Action"]) if action.startswith(("dynamodb:", "*"))}
        if actions and reaches(statement.get("Condition", {}), "ForAllValues:StringLike", partition):
            found[role] |= actions
    return dict(found)


def reaches(condition: Json, operator: str, partition: str) -> bool:
    """Whether a statement applies to a partition. A statement without a condition on partitions applies to all."""
    patterns = condition.get(operator, {}).get("dynamodb:LeadingKeys", ["*"])
    return any(fnmatchcase(partition, pattern) for pattern in patterns)


def trust(role: Json) -> Json:
    (statement,) = trusts(role)
    return statement


def trust_for_sessions_of_one_tenant(function_role: str, tag: str) -> list[Json]:
    """The trust policy of a role that one function assumes, each time with a tenant's tag and the caller's name."""
    only_the_tenants_tag = {"ForAllValues:StringEquals": {"aws:TagKeys": [tag]}}
    tenant, caller = {f"aws:RequestTag/{tag}": "?*"}, {"sts:SourceIdentity": "?*"}
    conditions = {
        "sts:AssumeRole": {**only_the_tenants_tag, "StringLike": tenant | caller},
        "sts:TagSession": {**only_the_tenants_tag, "StringLike": tenant},
        "sts:SetSourceIdentity": {"StringLike": caller},
    }
    principal = {"AWS": {"Fn::GetAtt": [function_role, "Arn"]}}
    return [
        {"Effect": "Allow", "Principal": principal, "Action": action, "Condition": condition}
        for action, condition in conditions.items()
    ]


def trusts(role: Json) -> list[Json]:
    found: list[Json] = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    return found


def spelled(value: Any) -> str:
    match value:
        case {"Fn::Join": [delimiter, parts]}:
            return str(delimiter).join(map(spelled, parts))
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Fn::Sub": text}:
            return str(text).replace("${", "<").replace("}", ">")
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::ImportValue": name}:
            return f"<{name}>"
    return str(value)


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def documents(template: Json) -> Iterator[tuple[str, Json]]:
    """Every statement of every policy in the template, with the logical id of its resource."""
    for logical_id, resource in template["Resources"].items():
        for document in _documents_in(resource.get("Properties", {})):
            for statement in listed(document["Statement"]):
                yield logical_id, statement
        if resource["Type"] == "AWS::Lambda::Permission":
            yield logical_id, _as_statement(resource["Properties"])


def _documents_in(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        if "Statement" in value:
            yield value
        for within in value.values():
            yield from _documents_in(within)
    elif isinstance(value, list):
        for within in value:
            yield from _documents_in(within)


def _as_statement(permission: Json) -> Json:
    """A permission to call a function, as the equivalent policy statement."""
    conditions = {"SourceArn": "ArnLike", "SourceAccount": "StringEquals"}
    return {
        "Effect": "Allow",
        "Principal": {"Service": permission["Principal"]},
        "Action": permission["Action"],
        "Resource": permission["FunctionName"],
        "Condition": {
            operator: {f"aws:{key}": permission[key]} for key, operator in conditions.items() if key in permission
        },
    }
