"""Checks a tenant's template against the contract, and says for each finding what to do.

The template may be anybody's: the checks run before it is published, and nothing in it is trusted. They answer four
questions. Can Berth deploy it (format, parameters, metadata resource, outputs)? Can CloudFormation (sizes, types that
the service role may create)? Does a tenant keep its messages (queues of earlier releases)? And does it stay within its
own tenant (policies, names, references)? A template that passes may still fail in CloudFormation, for one tenant, whose
operation then says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.input_limits import MAX_LEVELS, check_can_be_handled
from orchestrator.common.versions import VERSION_PATTERN
from orchestrator.releases import template_contract as contract
from orchestrator.releases.findings import Finding, Rule
from orchestrator.releases.published import canonical
from orchestrator.releases.service_permissions import Permissions, needed_action
from orchestrator.releases.template_names import ReservedNames, name_findings, others_findings
from orchestrator.releases.template_policies import policy_findings
from orchestrator.releases.template_queues import EarlierRelease, kept_findings, queue_findings
from orchestrator.releases.template_references import reference_findings
from orchestrator.releases.template_texts import PossibleTexts, TooManyTexts
from orchestrator.releases.template_values import function_of, mapping, reference, values, without_references

MAX_FINDINGS = 100
"""The maximum number of findings of one check. Who has more repairs those first."""
_RETURN_LISTS = frozenset({"Fn::Cidr", "Fn::GetAZs", "Fn::Split"})

_TYPE = re.compile(r"AWS::([A-Za-z0-9]+)::([A-Za-z0-9]+)")
_PASSED_ROLE = re.compile(r"(?:[A-Z][A-Za-z0-9]*)?Role(?:Arn|ARN)?")
"""The names of properties by which a resource hands a role over to a service."""
_OUTPUT_NAME = re.compile(r"[A-Za-z0-9]{1,255}")
_ASSET = re.compile(r"cdk-[a-z0-9]+-(?:assets|container-assets)-")
_RESOURCE_FIELDS = frozenset(
    {
        "Condition",
        "CreationPolicy",
        "DeletionPolicy",
        "DependsOn",
        "Metadata",
        "Properties",
        "Type",
        "UpdatePolicy",
        "UpdateReplacePolicy",
    }
)
_PARAMETER_FIELDS = frozenset({"ConstraintDescription", "Default", "Description", "NoEcho", "Type"})
"""Fields of a parameter that are no constraints of its values."""
_REFUSED_SECTIONS = {
    "Rules": "Its assertions would refuse tenants when their stacks are made.",
    "Transform": "A macro could change the template after it was checked.",
}
_METADATA_PROPERTIES: Mapping[str, tuple[str, str | None]] = {
    "ServiceToken": (contract.SERVICE_TOKEN_PARAMETER, None),
    contract.TENANT_PARAMETER: (contract.TENANT_PARAMETER, None),
    contract.QUEUE_ARN: (contract.INBOUND_QUEUE, "Arn"),
    contract.QUEUE_URL: (contract.INBOUND_QUEUE, None),
}
_MAX_SERVICE_TIMEOUT = 600
_FORBIDDEN_SERVICES = {
    "CloudFormation": "it makes other stacks, which Berth would neither see nor check",
    "IAM": "the service role may never change permissions",
    "Organizations": "the service role may never change permissions",
    "RAM": "it shares resources with other accounts",
    "RolesAnywhere": "the service role may never change permissions",
    "SSO": "the service role may never change permissions",
    "ServiceCatalog": "it makes other stacks, which Berth would neither see nor check",
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts that a template is checked against, besides the contract. ``None`` is unknown, and not checked."""

    version: str | None = None
    """The version under which the template is to be published."""
    permissions: Permissions | None = None
    """The permissions of the service role of tenants' stacks."""
    earlier: Sequence[EarlierRelease] = field(default=())
    """The releases whose queues the template has to keep."""
    reserved: ReservedNames = field(default_factory=ReservedNames)
    """The names of the control plane and its tenants, which the template may not use."""


def check_template(template: object, surroundings: Surroundings = Surroundings()) -> list[Finding]:  # noqa: B008
    """All findings, in the order of the rules; an empty list if the template keeps the contract."""
    if not isinstance(template, dict):
        return [Finding(Rule.FORMAT, "", "The template is not a JSON object.", "Write one object with Resources.")]
    try:
        # The rules follow the template to its innermost values.
        check_can_be_handled(template, "Berth takes no such template")
    except InvalidRequest as refused:
        advice = f"Write at most {MAX_LEVELS} levels, in whole characters."
        return [Finding(Rule.FORMAT, "", f"{refused}.", advice)]
    found = islice(_findings(template, surroundings), MAX_FINDINGS)
    return sorted(found, key=lambda each: list(Rule).index(each.rule))


def check_operators_template(template: object, surroundings: Surroundings) -> list[Finding]:
    """The findings in a template that is not Berth's own: its version must not be one of Berth's, either."""
    version = surroundings.version or declared_version(template)
    found = check_template(template, surroundings)
    if version is None or contract.is_operators(version):
        return found
    first = contract.FIRST_VERSION_OF_OPERATORS
    finding = Finding(
        Rule.VERSION,
        "",
        f"Versions before {first} are those of the releases that come with Berth, so {version} is not yours to use.",
        f"Begin at {first}.",
    )
    return [finding, *found]


def declared_version(template: object) -> str | None:
    """The version that the template itself names in its output, if it is one."""
    value = mapping(mapping(mapping(template).get("Outputs")).get(contract.VERSION)).get("Value")
    return value if isinstance(value, str) and re.fullmatch(VERSION_PATTERN, value) else None


def _findings(template: Mapping[str, Any], surroundings: Surroundings) -> Iterator[Finding]:
    yield from _format(template)
    resources = template.get("Resources")
    if not isinstance(resources, dict):
        return
    yield from _parameters(mapping(template.get("Parameters")))
    yield from _types(resources, surroundings.permissions)
    yield from _metadata_resource(resources, surroundings.version or declared_version(template))
    yield from queue_findings(template)
    yield from kept_findings(template, surroundings.earlier)
    yield from name_findings(resources)
    yield from others_findings(template, surroundings.reserved)
    yield from policy_findings(resources)
    yield from reference_findings(template)
    yield from _assets(template)
    yield from _outputs(template, surroundings.version)


# Format and sizes


def _format(template: Mapping[str, Any]) -> Iterator[Finding]:
    for section in template:
        if section not in contract.SECTIONS:
            why = _REFUSED_SECTIONS.get(section, "")
            yield Finding(Rule.FORMAT, section, f"A tenant's template has no section {section!a}. {why}", "Remove it.")
    for section in contract.SECTIONS - {"AWSTemplateFormatVersion", "Description"}:
        if section in template and not isinstance(template[section], dict):
            yield Finding(Rule.FORMAT, section, "The section is not an object.", "Write an object.")
    resources = template.get("Resources")
    if not isinstance(resources, dict) or not resources:
        yield Finding(Rule.FORMAT, "Resources", "The template has no resources.", "Add the tenant's queue.")
        return
    for name, each in resources.items():
        yield from _resource(f"Resources.{name}", each)
    yield from _sizes(template)


def _resource(place: str, resource: object) -> Iterator[Finding]:
    if not isinstance(resource, dict):
        yield Finding(Rule.FORMAT, place, "The resource is not an object.", "Write an object with a Type.")
        return
    for key in sorted(resource.keys() - _RESOURCE_FIELDS):
        yield Finding(Rule.FORMAT, f"{place}.{key}", f"A resource has no field {key!a}.", "Remove it.")
    properties = resource.get("Properties", {})
    if not isinstance(properties, dict) or function_of(properties) is not None:
        yield Finding(Rule.FORMAT, f"{place}.Properties", "The properties are not an object.", "Write them out.")


def _sizes(template: Mapping[str, Any]) -> Iterator[Finding]:
    size = len(canonical(template))
    if size > contract.MAX_TEMPLATE_BYTES:
        yield Finding(
            Rule.FORMAT,
            "",
            f"The template has {size:,} bytes when it is published; CloudFormation takes "
            f"{contract.MAX_TEMPLATE_BYTES:,}.",
            "Remove descriptions and metadata, or resources.",
        )
    for section, limit in (("Resources", contract.MAX_RESOURCES), ("Outputs", contract.MAX_OUTPUTS)):
        if (count := len(mapping(template.get(section)))) > limit:
            yield Finding(Rule.FORMAT, section, f"There are {count}; at most {limit} are allowed.", "Remove some.")


# Parameters


def _parameters(parameters: Mapping[str, Any]) -> Iterator[Finding]:
    for name in sorted(contract.ALWAYS_GIVEN - parameters.keys()):
        yield Finding(
            Rule.PARAMETERS,
            f"Parameters.{name}",
            f"The parameter {name} is missing. Berth gives it to every stack.",
            f'Declare it: "{name}": {{"Type": "String"}}.',
        )
    for name, each in parameters.items():
        place = f"Parameters.{name}"
        if name not in contract.ALWAYS_GIVEN and name != contract.KMS_KEY_PARAMETER:
            yield Finding(
                Rule.PARAMETERS,
                place,
                f"Berth does not give a parameter {name!a}.",
                "Write its value into the template. The parameters are "
                f"{contract.TENANT_PARAMETER}, {contract.SERVICE_TOKEN_PARAMETER} and {contract.KMS_KEY_PARAMETER}."
                + (" In the CDK, use TenantStack, which needs no bootstrap." if name == "BootstrapVersion" else ""),
            )
            continue
        if mapping(each).get("Type") != "String":
            yield Finding(Rule.PARAMETERS, place, "Its type is not String.", 'Write "Type": "String".')
        if "NoEcho" in mapping(each):
            yield Finding(
                Rule.PARAMETERS,
                place,
                "NoEcho hides the value, which Berth compares.",
                "Remove NoEcho: it is no secret.",
            )
        yield from _constraints(place, name, mapping(each))
        default = mapping(each).get("Default")
        if name == contract.KMS_KEY_PARAMETER and default != "":
            yield Finding(Rule.PARAMETERS, place, "Without a key, Berth gives an empty text.", 'Write "Default": "".')
        elif name in contract.ALWAYS_GIVEN and default is not None:
            yield Finding(Rule.PARAMETERS, place, "A default would hide a missing value.", "Remove the default.")


def _constraints(place: str, name: str, parameter: Mapping[str, Any]) -> Iterator[Finding]:
    """Berth has checked the values before. A narrower constraint would refuse tenants when their stacks are made."""
    for key in sorted(parameter.keys() - _PARAMETER_FIELDS):
        if parameter[key] != contract.CONSTRAINTS.get(name, {}).get(key):
            yield Finding(
                Rule.PARAMETERS,
                f"{place}.{key}",
                f"{key} can refuse a value that Berth gives, and then the tenant cannot be created.",
                f"Remove {key}. Berth has checked the value.",
            )


# Resource types and the service role


def _types(resources: Mapping[str, Any], permissions: Permissions | None) -> Iterator[Finding]:
    for name, each in resources.items():
        place, kind = f"Resources.{name}", mapping(each).get("Type")
        if kind == contract.METADATA_TYPE:
            continue  # The rule about the metadata resource is stricter.
        found = _TYPE.fullmatch(kind) if isinstance(kind, str) else None
        if found is None:
            yield Finding(
                Rule.TYPES,
                place,
                f"Resources of type {str(kind)[:100]!a} are not allowed: only AWS's own types are, and the resource "
                f"{contract.METADATA_RESOURCE}. Modules, other publishers' types and custom resources run code of "
                "somebody else.",
                "Use a resource of AWS (AWS::Service::Resource), or create it outside of the tenant's stack.",
            )
        elif reason := _FORBIDDEN_SERVICES.get(found[1]):
            yield Finding(Rule.TYPES, place, f"{kind} is not allowed: {reason}.", "Create it outside of the stack.")
        elif permissions is not None and not permissions.allow_creating(str(kind)):
            yield Finding(
                Rule.TYPES,
                place,
                f"The service role of tenants' stacks may not create {kind}: no policy allows "
                f"{needed_action(str(kind))}.",
                "Deploy Berth with a managed policy that allows it: -c berth:stackPolicyArns=arn:...",
            )
        else:
            yield from _passed_roles(f"{place}.Properties", mapping(each).get("Properties"))


def _passed_roles(place: str, properties: object) -> Iterator[Finding]:
    """CloudFormation passes a role with the permissions of the service role, and the boundary denies that to it."""
    names = (inner for inner, name in values(properties, place) if isinstance(name, str) and inner.endswith(f".{name}"))
    for inner in dict.fromkeys(names):
        if _PASSED_ROLE.fullmatch(inner.rpartition(".")[2]):
            yield Finding(
                Rule.TYPES,
                inner,
                "The service role of tenants' stacks may never pass a role to a service (iam:PassRole), whatever its "
                "policies allow.",
                "Remove it. Create what needs a role, such as a function, outside of the tenant's stack.",
            )


# The metadata resource


def _metadata_resource(resources: Mapping[str, Any], version: str | None) -> Iterator[Finding]:
    for name, each in resources.items():
        if mapping(each).get("Type") == contract.METADATA_TYPE and name != contract.METADATA_RESOURCE:
            yield Finding(
                Rule.METADATA,
                f"Resources.{name}",
                f"A second resource of type {contract.METADATA_TYPE} would record the queue twice.",
                f"Keep only {contract.METADATA_RESOURCE}.",
            )
    place = f"Resources.{contract.METADATA_RESOURCE}"
    resource = mapping(resources.get(contract.METADATA_RESOURCE))
    if resource.get("Type") != contract.METADATA_TYPE:
        yield Finding(
            Rule.METADATA,
            place,
            f"There is no resource {contract.METADATA_RESOURCE} of type {contract.METADATA_TYPE}. It keeps the "
            "tenant's record true to the stack, also on a rollback.",
            "Copy it from the example: docs/templates/queue-bucket-table.json.",
        )
        return
    yield from _metadata_of_every_stack(place, resource)
    yield from _metadata_properties(f"{place}.Properties", mapping(resource.get("Properties")), version)


def _metadata_of_every_stack(place: str, resource: Mapping[str, Any]) -> Iterator[Finding]:
    if "Condition" in resource:
        yield Finding(Rule.METADATA, f"{place}.Condition", "The resource depends on a condition.", "Remove it.")
    if resource.get("DeletionPolicy", "Delete") != "Delete":
        yield Finding(
            Rule.METADATA,
            f"{place}.DeletionPolicy",
            "CloudFormation would not call the resource when the stack is deleted, and the queue would be served on.",
            "Remove it.",
        )


def _metadata_properties(place: str, properties: Mapping[str, Any], version: str | None) -> Iterator[Finding]:
    for name, expected in _METADATA_PROPERTIES.items():
        if reference(properties.get(name)) != expected:
            yield _wrong_reference(Rule.METADATA, f"{place}.{name}", expected)
    if not isinstance(properties.get(contract.VERSION), str) or version not in (None, properties[contract.VERSION]):
        yield Finding(
            Rule.METADATA,
            f"{place}.{contract.VERSION}",
            "It is not the version of the release, so an update would not call the resource.",
            f'Write "{contract.VERSION}": "{version or "2.1.0"}". In the CDK, it is the version of TenantStack.',
        )
    if not _is_short(properties.get("ServiceTimeout")):
        yield Finding(
            Rule.METADATA,
            f"{place}.ServiceTimeout",
            "Without a timeout, CloudFormation waits for an hour if the function does not answer.",
            f'Write "ServiceTimeout": 300, at most {_MAX_SERVICE_TIMEOUT} seconds.',
        )
    known = {*_METADATA_PROPERTIES, contract.VERSION, "ServiceTimeout"}
    for name in sorted(properties.keys() - known):
        yield Finding(Rule.METADATA, f"{place}.{name}", f"There is no property {name!a}.", "Remove it.")


def _is_short(timeout: object) -> bool:
    return bool(re.fullmatch("[0-9]{1,4}", str(timeout))) and 0 < int(str(timeout)) <= _MAX_SERVICE_TIMEOUT


def _wrong_reference(rule: Rule, place: str, expected: tuple[str, str | None]) -> Finding:
    name, attribute = expected
    written = f'{{"Fn::GetAtt": ["{name}", "{attribute}"]}}' if attribute else f'{{"Ref": "{name}"}}'
    return Finding(rule, place, "The value is missing, or another one.", f"Write {written}.")


# Assets


def _assets(template: Mapping[str, Any]) -> Iterator[Finding]:
    for place, value in values(template):
        if isinstance(value, str) and (_ASSET.search(value) or value.startswith("aws:asset:")):
            yield Finding(
                Rule.ASSETS,
                place,
                "The template uses an asset of the CDK. It is in a bucket that tenants' stacks do not read.",
                "Remove what needs the asset, such as a function with code of its own.",
            )
            return


# Outputs


def _outputs(template: Mapping[str, Any], version: str | None) -> Iterator[Finding]:
    outputs = mapping(template.get("Outputs"))
    expected = {name: _METADATA_PROPERTIES[name] for name in (contract.QUEUE_ARN, contract.QUEUE_URL)}
    for name in (*expected, contract.VERSION):
        if "Condition" in mapping(outputs.get(name)):
            yield Finding(Rule.OUTPUTS, f"Outputs.{name}.Condition", "Every tenant has this output.", "Remove it.")
    for name, target in expected.items():
        if reference(mapping(outputs.get(name)).get("Value")) != target:
            yield _wrong_reference(Rule.OUTPUTS, f"Outputs.{name}.Value", target)
    texts = PossibleTexts(template)
    declared = declared_version(template)
    if declared is None or version not in (None, declared):
        yield Finding(
            Rule.OUTPUTS,
            f"Outputs.{contract.VERSION}.Value",
            "It is not the version of the release." if version else "It is not a version like 2.1.0.",
            f'Write "Value": "{version or "2.1.0"}".',
        )
    for name, each in outputs.items():
        place = f"Outputs.{name}"
        if not _OUTPUT_NAME.fullmatch(name) or "Value" not in mapping(each):
            yield Finding(Rule.OUTPUTS, place, "An output has a name of letters and digits, and a Value.", "Repair it.")
        elif "Export" in each:
            yield Finding(
                Rule.OUTPUTS,
                f"{place}.Export",
                "An export's name is unique in the account, so a second tenant could not have it.",
                "Remove the export. Berth answers with every output of the tenant's stack.",
            )
        else:
            yield from _output_value(f"{place}.Value", each["Value"], texts)


def _output_value(place: str, value: object, texts: PossibleTexts) -> Iterator[Finding]:
    try:
        possible = texts.of(value)
    except TooManyTexts:
        return  # The rule about other tenants' names refuses such a value.
    if not possible or (function_of(value) or ("",))[0] in _RETURN_LISTS:
        yield Finding(
            Rule.OUTPUTS,
            place,
            "The value of an output is a text, and this is none.",
            'Write a text or a reference. Of a list, make a text: {"Fn::Join": [",", ...]}.',
        )
    elif max(len(without_references(text).encode()) for text in possible) > contract.MAX_OUTPUT_BYTES:
        yield Finding(
            Rule.OUTPUTS,
            place,
            f"The value has more than {contract.MAX_OUTPUT_BYTES:,} bytes; CloudFormation takes no longer one.",
            "Shorten it, or make several outputs of it.",
        )
