"""References in a template: nothing that CloudFormation would fetch from elsewhere, and nothing that is not there.

A dynamic reference, ``{{resolve:secretsmanager:...}}``, is fetched with the permissions of the stack's deployer,
and the value would be in the stack. CloudFormation finds it in the text that it has put together from functions. So no
text may have two braces in a row, and none may end with one, to which another function could add the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.releases import template_contract as contract
from orchestrator.releases.findings import Finding, Rule
from orchestrator.releases.template_texts import PossibleTexts, TooManyTexts
from orchestrator.releases.template_values import (
    function_of,
    literals_of_sub,
    mapping,
    reference,
    values,
    variables_of_sub,
    without_references,
)

_PSEUDO = frozenset(
    f"AWS::{name}"
    for name in ("AccountId", "NoValue", "NotificationARNs", "Partition", "Region", "StackId", "StackName", "URLSuffix")
)
_PLACE_OF_SERVICE_TOKEN = f"Resources.{contract.METADATA_RESOURCE}.Properties.ServiceToken"
_STORED_TEXT = "AWS::SSM::Parameter"
"""Resources of this type return a text of the template as the attribute Value. It could be the address of another
tenant's queue, where only a queue of the template may be named."""


def reference_findings(template: Mapping[str, Any]) -> Iterator[Finding]:
    known = {*mapping(template.get("Parameters")), *mapping(template.get("Resources")), *_PSEUDO}
    braces = _Braces(template)
    for place, value in values(template):
        if isinstance(value, str):
            yield from _text(place, value)
            if value.startswith("Fn::") and value not in contract.FUNCTIONS and place.endswith(value):
                yield Finding(
                    Rule.REFERENCES,
                    place,
                    f"The function {value!a} is not allowed: it takes values of other stacks, or needs a macro.",
                    "Write the value into the template, or leave it to the platform to pass it on.",
                )
        elif isinstance(value, dict):
            yield from _beside_others(place, value)
            yield from _function(place, value, known, mapping(template.get("Resources")), braces)
    for name, each in mapping(template.get("Resources")).items():
        needed = mapping(each).get("DependsOn", [])
        for other in needed if isinstance(needed, list) else [needed]:
            if not isinstance(other, str) or other not in mapping(template.get("Resources")):
                yield _unknown(f"Resources.{name}.DependsOn", other)


def _text(place: str, text: str) -> Iterator[Finding]:
    if "{{" in text or text.endswith("{"):
        yield Finding(
            Rule.REFERENCES,
            place,
            "Dynamic references ({{resolve:...}}) are not allowed, nor are texts that could become one: two braces in "
            "a row, or one at the end. CloudFormation would put secrets of the account into the tenant's stack.",
            "Let the platform read the secret itself.",
        )


def _beside_others(place: str, value: Mapping[str, Any]) -> Iterator[Finding]:
    """The checks read such an object as a plain one, and CloudFormation may read it otherwise."""
    functions = [name for name in value if name == "Ref" or name.startswith("Fn::")]
    if functions and len(value) > 1:
        yield Finding(
            Rule.REFERENCES,
            place,
            f"A function stands alone in its object, and beside {functions[0]!a} is something else.",
            "Remove what is beside the function.",
        )


def _function(
    place: str, value: object, known: set[str], resources: Mapping[str, Any], braces: _Braces
) -> Iterator[Finding]:
    match function_of(value):
        case ("Fn::Sub", arguments):
            yield from _substitution(place, arguments, known, resources)
        case ("Fn::Split", arguments):
            if any(braces.may_be_in(each) for _, each in values(arguments)):
                yield Finding(
                    Rule.REFERENCES,
                    place,
                    "Fn::Split could cut a text with braces into the parts of a dynamic reference.",
                    "Write the parts out, and remove Fn::Split.",
                )
        case ("Ref" | "Fn::GetAtt", arguments):
            found = reference(value)
            if found is None or found[0] not in known:
                yield _unknown(place, arguments)
            elif found[0] == contract.SERVICE_TOKEN_PARAMETER and place != _PLACE_OF_SERVICE_TOKEN:
                yield _service_token(place)
            elif _is_stored_text(found, resources):
                yield _stored(place)


def _substitution(place: str, arguments: object, known: set[str], resources: Mapping[str, Any]) -> Iterator[Finding]:
    text, variables = arguments if isinstance(arguments, list) and len(arguments) == 2 else (arguments, {})
    if not isinstance(text, str):
        yield Finding(Rule.REFERENCES, place, "Fn::Sub takes a text.", "Write the text out.")
        return
    for literal in literals_of_sub(text):
        # CloudFormation makes ${x} of ${!x}, and of ${!{resolve:...}} a text with two braces in a row.
        yield from _text(place, literal.replace("${!", "${"))
    for variable in variables_of_sub(text):
        name, _, attribute = variable.partition(".")
        if variable in mapping(variables):
            continue
        if name not in known:
            yield _unknown(place, variable)
        elif name == contract.SERVICE_TOKEN_PARAMETER:
            yield _service_token(place)
        elif _is_stored_text((name, attribute), resources):
            yield _stored(place)


class _Braces:
    """Finds the values of a template that may become a text with a brace."""

    def __init__(self, template: Mapping[str, Any]) -> None:
        # A resource may return a text of its properties, such as the name that the template has chosen for it.
        self._texts = PossibleTexts(template, names=True)
        mapped = values(template.get("Mappings"))
        self._in_mappings = any(isinstance(each, str) and "{" in each for _, each in mapped)

    def may_be_in(self, value: object) -> bool:
        match function_of(value):
            case ("Fn::FindInMap", _):
                return self._in_mappings
            case ("Ref" | "Fn::GetAtt", _):
                try:
                    return any("{" in without_references(text) for text in self._texts.of(value))
                except TooManyTexts:
                    return True
        return isinstance(value, str) and "{" in value


def _is_stored_text(found: tuple[str, str | None], resources: Mapping[str, Any]) -> bool:
    name, attribute = found
    return attribute == "Value" and mapping(resources.get(name)).get("Type") == _STORED_TEXT


def _service_token(place: str) -> Finding:
    return Finding(
        Rule.REFERENCES,
        place,
        f"{contract.SERVICE_TOKEN_PARAMETER} is a function of Berth. Only {contract.METADATA_RESOURCE} may name it: "
        "any other resource could change it, call it or read its log.",
        "Remove the reference.",
    )


def _stored(place: str) -> Finding:
    return Finding(
        Rule.REFERENCES,
        place,
        "It reads a text of the template back from a resource, so what it is used for cannot be checked.",
        "Write the text here, too.",
    )


def _unknown(place: str, name: object) -> Finding:
    return Finding(
        Rule.REFERENCES,
        place,
        f"{str(name)[:100]!a} is neither a parameter nor a resource of this template.",
        "Name one that is. Values of other stacks are not available.",
    )
