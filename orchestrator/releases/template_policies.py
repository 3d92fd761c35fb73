"""Policies in a template: they may open the template's own resources, to the same account, and nothing else.

CloudFormation applies a policy to whatever resource its template names, with the permissions of the service role, which
reach every tenant's queues. So a policy must name a resource of its own template, and admit only principals of the
stack's account. A statement that denies something may name anybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.releases.findings import Finding, Rule
from orchestrator.releases.template_values import entries, function_of, mapping, reference, text_of, values

_TARGETS = {
    "AWS::DynamoDB::ResourcePolicy": ("ResourceArn", ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")),
    "AWS::Events::EventBusPolicy": ("EventBusName", ("AWS::Events::EventBus",)),
    "AWS::Kinesis::ResourcePolicy": ("ResourceArn", ("AWS::Kinesis::Stream", "AWS::Kinesis::StreamConsumer")),
    "AWS::Lambda::Permission": (
        "FunctionName",
        ("AWS::Lambda::Alias", "AWS::Lambda::Function", "AWS::Lambda::Version"),
    ),
    "AWS::S3::BucketPolicy": ("Bucket", ("AWS::S3::Bucket",)),
    "AWS::SNS::TopicInlinePolicy": ("TopicArn", ("AWS::SNS::Topic",)),
    "AWS::SNS::TopicPolicy": ("Topics", ("AWS::SNS::Topic",)),
    "AWS::SQS::QueueInlinePolicy": ("Queue", ("AWS::SQS::Queue",)),
    "AWS::SQS::QueuePolicy": ("Queues", ("AWS::SQS::Queue",)),
    "AWS::SecretsManager::ResourcePolicy": ("SecretId", ("AWS::SecretsManager::Secret",)),
}
"""The property by which each type of policy names the resources that it is for, and their types. The name of a resource
of another type may be a text that the template chooses."""
_OPENING_TYPE = re.compile(r"Policy|Permission|Grant|Share|AccessPoint|Attachment")
"""Types that open resources. Those that are not in the table above are not known to be harmless."""
_DOCUMENT = re.compile(r"(?:Policy|PolicyDocument|PolicyText|Policies)\Z")
_ELEMENTS = {name.lower(): name for name in ("Effect", "NotPrincipal", "Principal", "Principals")}
_PRIVATE = (None, "Private", "BucketOwnerFullControl")
_OWN_ACCOUNT = re.compile(
    r"\$\{AWS::AccountId\}"
    r"|arn:(?:aws[a-z-]*|\$\{AWS::Partition\}):(?:iam|sts)::\$\{AWS::AccountId\}:[A-Za-z0-9+=,.@/_-]+"
)
_SERVICE = re.compile(r"[a-z0-9.-]+\.(?:amazonaws\.com(?:\.cn)?|\$\{AWS::URLSuffix\})")
_SOURCE_OPERATORS = frozenset({"StringEquals", "StringLike", "ArnEquals", "ArnLike"})
_ACCOUNT_IN_ARN = re.compile(r"arn:[^:]*:[^:]*:[^:]*:\$\{AWS::AccountId\}:[^:]")


def policy_findings(resources: Mapping[str, Any]) -> Iterator[Finding]:
    for name, each in resources.items():
        kind, properties = str(mapping(each).get("Type")), mapping(mapping(each).get("Properties"))
        place = f"Resources.{name}.Properties"
        yield from _target(f"Resources.{name}", kind, properties, resources)
        if properties.get("AccessControl") not in _PRIVATE:
            yield Finding(
                Rule.POLICIES, f"{place}.AccessControl", "It opens the bucket to others.", "Remove AccessControl."
            )
        for inner, value in values(properties, place):
            if isinstance(value, dict):
                yield from _document_as_text(inner, value)
                yield from _spelling(inner, value)
                if any(key in value for key in ("Effect", "Principal", "NotPrincipal")):
                    yield from _statement(inner, value, set(resources))
                if "Principals" in value:
                    yield _foreign(f"{inner}.Principals")


def _target(place: str, kind: str, properties: Mapping[str, Any], resources: Mapping[str, Any]) -> Iterator[Finding]:
    if kind not in _TARGETS:
        if _OPENING_TYPE.search(kind.rpartition("::")[2]):
            yield Finding(
                Rule.POLICIES,
                place,
                f"{kind} opens resources in a way that Berth does not know, so it cannot be checked.",
                "Create it outside of the tenant's stack.",
            )
        return
    target, types = _TARGETS[kind]
    named = [reference(each) for each in entries(properties.get(target))]
    if not named or any(found is None or mapping(resources.get(found[0])).get("Type") not in types for found in named):
        yield Finding(
            Rule.POLICIES,
            f"{place}.Properties.{target}",
            "The policy is for a resource that is not in this template, such as another tenant's queue.",
            'Name resources of the template: {"Ref": "InboundQueue"}.',
        )


def _document_as_text(place: str, value: Mapping[str, Any]) -> Iterator[Finding]:
    """A policy that is written as text cannot be checked: functions could put it together."""
    for key, each in value.items():
        is_text = isinstance(each, str) and "{" in each
        called = function_of(each)
        is_made = called is not None and called[0] != "Ref"
        if isinstance(key, str) and _DOCUMENT.search(key) and (is_text or is_made):
            yield Finding(
                Rule.POLICIES,
                f"{place}.{key}",
                "The policy is a text or the result of a function, so it cannot be checked.",
                "Write it as an object.",
            )


def _spelling(place: str, value: Mapping[str, Any]) -> Iterator[Finding]:
    """Services differ in whether they take "principal" for "Principal", so what is written so cannot be checked."""
    for key in value:
        written = _ELEMENTS.get(key.lower(), key)
        if written != key:
            yield Finding(
                Rule.POLICIES,
                f"{place}.{key}",
                f"Policies have {written}, not {key!a}. A service could take it nevertheless.",
                f"Write {written}.",
            )


def _statement(place: str, statement: Mapping[str, Any], resources: set[str]) -> Iterator[Finding]:
    if statement.get("Effect") == "Deny":
        return
    if "NotPrincipal" in statement:
        yield _foreign(f"{place}.NotPrincipal")
    if "Principal" not in statement:
        return  # The statement is one of a policy that admits nobody by itself.
    principal = statement["Principal"]
    if not isinstance(principal, dict) or function_of(principal) is not None:
        # A permission of Lambda or of an event bus names the principal as text, which may be a service.
        principal = {"Service" if _SERVICE.fullmatch(text_of(principal) or "") else "AWS": principal}
    for kind, named in principal.items():
        for each in entries(named):
            text = text_of(each) or ""
            if kind == "AWS" and _OWN_ACCOUNT.fullmatch(text):
                continue
            if kind == "Service" and _SERVICE.fullmatch(text):
                if not _has_source(statement, resources):
                    yield Finding(
                        Rule.POLICIES,
                        place,
                        f"{text} may act for any account: the statement does not say for whom.",
                        'Add the condition {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}.',
                    )
                continue
            yield _foreign(f"{place}.Principal")


def _has_source(statement: Mapping[str, Any], resources: set[str]) -> bool:
    """True if the statement is limited to one source account, or to a source in this account."""
    # Only permissions of Lambda, which have no Effect, name their source beside the principal.
    beside = {} if "Effect" in statement else statement
    named = [("aws:SourceAccount", beside.get("SourceAccount")), ("aws:SourceArn", beside.get("SourceArn"))]
    for operator, conditions in mapping(statement.get("Condition")).items():
        if operator in _SOURCE_OPERATORS:
            named += mapping(conditions).items()
    return any(_is_own_source(key, entries(value), resources) for key, value in named if value is not None)


def _is_own_source(key: str, given: list[Any], resources: set[str]) -> bool:
    match key.lower():
        case "aws:sourceaccount":
            return bool(given) and all(reference(each) == ("AWS::AccountId", None) for each in given)
        case "aws:sourcearn":
            return bool(given) and all(_is_own_arn(each, resources) for each in given)
    return False


def _is_own_arn(value: object, resources: set[str]) -> bool:
    found = reference(value)
    return (found is not None and found[0] in resources) or bool(_ACCOUNT_IN_ARN.match(text_of(value) or ""))


def _foreign(place: str) -> Finding:
    return Finding(
        Rule.POLICIES,
        place,
        "The statement admits somebody who may be outside of this account.",
        'Name principals of the account: {"AWS": {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}}.',
    )
