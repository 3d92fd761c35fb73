"""Names in a template: its resources have none that another tenant could have, and it names nothing of others.

Tenants' stacks share a service role, whose permissions reach what is named after any tenant's stack. So a resource that
names another tenant's topic, or a log group of Berth, would get it. Names of tenants and of Berth have prefixes, and a
template has no reason to write one: the names of its own tenant's resources are references.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.releases import template_contract as contract
from orchestrator.releases.findings import Finding, Rule
from orchestrator.releases.template_texts import PossibleTexts, TooManyTexts, texts_within
from orchestrator.releases.template_values import function_of, mapping, reference, text_of, values, without_references

_NAMING_PROPERTIES = frozenset(
    {
        "AlarmName",
        "AliasName",
        "CacheClusterId",
        "CacheSubnetGroupName",
        "ClusterIdentifier",
        "ClusterName",
        "DBClusterIdentifier",
        "DBInstanceIdentifier",
        "DBName",
        "Domain",
        "DomainName",
        "Name",
        "ReplicationGroupId",
        "TableName",
    }
)
"""Properties that name a resource, besides those that are called after its type, such as BucketName."""
_NAMED_WITHIN_ANOTHER = frozenset(
    {
        "AWS::ApiGateway::Authorizer",
        "AWS::ApiGateway::Model",
        "AWS::ApiGateway::RequestValidator",
        "AWS::ApiGateway::RestApi",
        "AWS::ApiGateway::Stage",
        "AWS::ApiGatewayV2::Api",
        "AWS::ApiGatewayV2::Authorizer",
        "AWS::ApiGatewayV2::Model",
        "AWS::ApiGatewayV2::Stage",
        "AWS::AppSync::DataSource",
        "AWS::AppSync::FunctionConfiguration",
        "AWS::AppSync::GraphQLApi",
        "AWS::Cognito::IdentityPool",
        "AWS::Cognito::UserPool",
        "AWS::Cognito::UserPoolResourceServer",
        "AWS::Lambda::Alias",
        "AWS::Logs::LogStream",
    }
)
"""Types whose names only have to be unique within another resource of the template, or not at all."""
_STACK_NAMES = ("${AWS::StackName}", "${AWS::StackId}")

_NAMES_NOTHING = frozenset({"Description", "Tags"})
"""Properties for people. Whatever they mention, CloudFormation reaches nothing by them."""
_ANY_TENANT = r"[a-z][a-z0-9-]{0,40}-tenant-[a-z0-9-]{0,40}-[0-9a-f]{8}(?![a-z0-9])"
"""The name of a tenant's stack, and of everything in it, in whatever control plane of the account."""
_WORD = re.compile(r"[A-Za-z0-9-]")
_STACK_NUMBER = {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}
"""The unique part of a stack's id, which has no names in it."""


@dataclass(frozen=True, slots=True)
class ReservedNames:
    """The names that only a control plane and its tenants have. The default is the one of an unnamed control plane."""

    control_plane: str = "Berth"
    legacy_prefixes: Sequence[str] = ()
    """The prefixes of the names that an earlier system has given to tenants' stacks."""

    def pattern(self) -> re.Pattern[str]:
        own = [
            _ANY_TENANT,
            rf"{re.escape(self.control_plane)}(?:events)?(?![a-z0-9:])[a-z0-9-]*",
            *(rf"{re.escape(prefix)}[a-z0-9-]*" for prefix in self.legacy_prefixes),
        ]
        return re.compile(rf"(?<![A-Za-z0-9._-])(?:{'|'.join(own)})", re.IGNORECASE)


def name_findings(resources: Mapping[str, Any]) -> Iterator[Finding]:
    """Resources whose names a second tenant could not have."""
    for name, each in resources.items():
        kind = str(mapping(each).get("Type"))
        if kind in _NAMED_WITHIN_ANOTHER:
            continue
        called_after_type = f"{kind.rpartition('::')[2]}Name"
        for key, value in mapping(mapping(each).get("Properties")).items():
            if key != called_after_type and key not in _NAMING_PROPERTIES:
                continue
            place, found = f"Resources.{name}.Properties.{key}", reference(value)
            is_queue = kind == contract.QUEUE_TYPE
            names_another = found is not None and found[0] in resources
            is_unique = any(part in (text_of(value) or "") for part in _STACK_NAMES)
            if is_queue or not (names_another or is_unique):
                yield Finding(
                    Rule.NAMES,
                    place,
                    "The resource has a name of its own: a second tenant could not have it"
                    + (", and Berth reaches only queues that CloudFormation names." if is_queue else "."),
                    "Remove the name, and let CloudFormation choose one."
                    + ("" if is_queue else ' If it needs one, begin it with {"Ref": "AWS::StackName"}.'),
                )


def others_findings(template: Mapping[str, Any], reserved: ReservedNames) -> Iterator[Finding]:
    """Texts that name something of Berth or of another tenant, and functions that could make such a name."""
    pattern = reserved.pattern()
    # A reference is something unknown, which may be empty; or it is the name that the template has chosen.
    readings = (PossibleTexts(template), PossibleTexts(template, names=True))
    for place, value in _named_values(template):
        try:
            names = [found for texts in readings for text in texts.of(value) for found in _found(pattern, text)]
        except TooManyTexts:
            yield Finding(
                Rule.OTHERS,
                place,
                "The functions can make more texts here than can be checked for names of other tenants.",
                "Write the text with fewer functions.",
            )
            continue
        if names:
            yield Finding(
                Rule.OTHERS,
                place,
                f"{names[0][:100]!a} is a name of Berth or of a tenant: every tenant's stack would reach for it.",
                'Name a resource of this template: {"Ref": "..."}. Names in the tenant\'s own stack begin with '
                '{"Ref": "AWS::StackName"}.',
            )
    yield from _cuts(template)


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    """Names in the text. What is before a reference and after it counts as one name, too: it may be empty."""
    apart, together = without_references(text, "\n"), without_references(text)
    return [found[0] for each in dict.fromkeys((apart, together)) if (found := pattern.search(each))]


def _named_values(template: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, each in mapping(template.get("Resources")).items():
        properties = mapping(mapping(each).get("Properties"))
        yield from texts_within(f"Resources.{name}.Properties", properties, without=_NAMES_NOTHING)
    for name, each in mapping(template.get("Outputs")).items():
        yield from texts_within(f"Outputs.{name}.Value", mapping(each).get("Value"))


def _cuts(template: Mapping[str, Any]) -> Iterator[Finding]:
    """The first part of this tenant's name, and the rest of another's, would be another tenant's name."""
    for place, value in values(template):
        match function_of(value):
            case ("Fn::Split", [delimiter, source]):
                if _has_reference(source) and source != _STACK_NUMBER and _cuts_names(delimiter):
                    yield Finding(
                        Rule.OTHERS,
                        place,
                        f"Fn::Split at {str(delimiter)[:20]!a} cuts names, and other tenants' names could be made of "
                        "the parts.",
                        'Split at "/" or ":". A part that is unique is {"Fn::Select": [2, {"Fn::Split": ["/", '
                        '{"Ref": "AWS::StackId"}]}]}.',
                    )


def _cuts_names(delimiter: object) -> bool:
    return not isinstance(delimiter, str) or bool(_WORD.search(delimiter))


def _has_reference(source: object) -> bool:
    return any(function_of(each) is not None for _, each in values(source))
