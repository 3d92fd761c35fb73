"""Features of IAM that Berth's policies use and ministack does not evaluate.

Each ``_add_...`` replaces one function of ministack by a function that calls the original and adds what is missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from ministack.core import iam_actions, iam_evaluator
from ministack.services import dynamodb

from orchestrator.local.emulator import ACCOUNT, REGION
from tests.e2e.enforced.decisions import Decision, DecisionLog
from tests.e2e.enforced.service_roles import Operators, Tokens

ROLE, TEMPLATE = "cloudformation:RoleArn", "cloudformation:TemplateUrl"
SOURCE_IDENTITY = "sts:SourceIdentity"
PARAMETERS = {
    "cloudformation": {ROLE: "RoleARN", TEMPLATE: "TemplateURL"},
    "sts": {SOURCE_IDENTITY: "SourceIdentity"},
}
"""Condition keys by service, each with the request parameter that has its value."""
ENCLOSING_OPERATION = "dynamodb:EnclosingOperation"
"""The context key by which the emulator marks an item of a transaction."""
STATEMENT = "the statement"
"""The context key of a PartiQL statement. The permission that it needs depends on its verb."""
PARTITION_KEYS = ("pk", "ListingKey", "GSI1PK", "GSI2PK")
"""The partition keys of the tables and of their indexes."""


class RowArn(str):
    """The ARN of a table, with the partition of the row that a request is about."""

    partition: str | None = None


def install(log: DecisionLog, operators: Operators, tokens: Tokens) -> None:
    _add_policy_variables()
    _add_roles_of_sessions()
    _add_leading_keys()
    _add_table_policies()
    _add_parameters()
    _add_source_identities(log)
    _add_resources(tokens)
    _add_implied_permissions(log, operators)


def _add_policy_variables() -> None:
    """Replace ``${aws:PrincipalTag/...}`` in the values of conditions."""
    original = iam_evaluator._conditions_met

    def conditions_met(conditions: dict[str, Any], context: Any) -> Any:
        return original(_with_values(conditions, context), context)

    iam_evaluator._conditions_met = conditions_met


def _add_roles_of_sessions() -> None:
    """``aws:PrincipalArn`` is the ARN of the role, not of its session."""
    original = iam_evaluator._resolve_condition_key

    def resolve(key: str, context: Any) -> Any:
        found = original(key, context)
        session = re.fullmatch(r"arn:aws:sts::(\d+):assumed-role/([^/]+)/.*", str(found))
        if key.lower() == "aws:principalarn" and session:
            return f"arn:aws:iam::{session[1]}:role/{session[2]}"
        return found

    iam_evaluator._resolve_condition_key = resolve


def _with_values(part: Any, context: Any) -> Any:
    if isinstance(part, dict):
        return {name: _with_values(value, context) for name, value in part.items()}
    if isinstance(part, list):
        return [_with_values(value, context) for value in part]
    if not isinstance(part, str):
        return part

    def value(variable: re.Match[str]) -> str:
        # A variable without a value must match nothing, so its text stays as it is.
        found = iam_evaluator._resolve_condition_key(variable[1], context)
        return variable[0] if found is None else str(found)

    return re.sub(r"\$\{([^}]+)\}", value, part)


def _add_leading_keys() -> None:
    """``dynamodb:LeadingKeys``: the partitions that a request names. Each item of a transaction has its own."""
    context, transaction = iam_actions.dynamodb_service_context, iam_actions.dynamodb_transaction_checks

    def service_context(body: bytes) -> Any:
        request = json.loads(body or b"{}")
        partitions = list(_partitions(request))
        keys = {"dynamodb:LeadingKeys": partitions} if partitions else {}
        return {**context(body), **keys, **({STATEMENT: request["Statement"]} if "Statement" in request else {})}

    def transaction_checks(action: str, body: bytes, region: str, account: str) -> Any:
        checks = transaction(action, body, region, account)
        if not checks:
            return checks
        items = [detail for item in json.loads(body)["TransactItems"] for detail in item.values()]
        return [(each, _row(arn, item)) for (each, arn), item in zip(checks, items, strict=True)]

    iam_actions.dynamodb_service_context = service_context
    iam_actions.dynamodb_transaction_checks = transaction_checks


def _row(table: str, item: Mapping[str, Any]) -> RowArn:
    arn = RowArn(table)
    (arn.partition,) = _partitions(item)
    return arn


def _partitions(request: Mapping[str, Any]) -> Iterator[str]:
    """The partitions of the rows in a request, or in one item of a transaction."""
    if "KeyConditionExpression" in request:
        names, values = request.get("ExpressionAttributeNames", {}), request["ExpressionAttributeValues"]
        for name, value in re.findall(r"(#?\w+)\s*=\s*(:\w+)", request["KeyConditionExpression"]):
            if names.get(name, name) in PARTITION_KEYS:
                yield values[value]["S"]
    for items in request.get("RequestItems", {}).values():
        for each in items["Keys"] if "Keys" in items else [part for write in items for part in write.values()]:
            yield from _partitions(each if {"Key", "Item"} & set(each) else {"Key": each})
    for part in ("Key", "Item"):
        if part in request:
            yield request[part]["pk"]["S"]
    # PartiQL, in the form that these tests use: 'pk': '...', or pk = '...'.
    yield from re.findall(r"\bpk'?\s*[:=]\s*'([^']*)'", request.get("Statement", ""))


def _add_table_policies() -> None:
    def policy_of(arn: str) -> tuple[str, str] | None:
        found = dynamodb._resource_policies.get(arn.split("/index/")[0])
        return (found["Policy"], ACCOUNT) if found else None

    dynamodb.table_policy_for_arn = policy_of
    iam_evaluator._RESOURCE_POLICY_LOOKUPS["dynamodb"] = ("dynamodb", "table_policy_for_arn")


_source_identity: ContextVar[str | None] = ContextVar("source_identity")


def _add_parameters() -> None:
    original = iam_actions.request_tag_context

    def context(service: str, action: str, body: bytes, parameters: dict[str, Any]) -> Any:
        names = PARAMETERS.get(service, {})
        values = {key: iam_actions._query_param(parameters, name) for key, name in names.items()}
        _source_identity.set(values.get(SOURCE_IDENTITY) or None)
        given = {key: value for key, value in values.items() if value}
        return {**original(service, action, body, parameters), **given, **_encryption_context(service, body)}

    iam_actions.request_tag_context = context


def _encryption_context(service: str, body: bytes) -> dict[str, str]:
    """``kms:EncryptionContext:...``: the encryption context of a request to KMS."""
    given = json.loads(body or b"{}").get("EncryptionContext", {}) if service == "kms" else {}
    return {f"kms:EncryptionContext:{name}": value for name, value in given.items()}


def _add_source_identities(log: DecisionLog) -> None:
    """The trust policy of a role sees the source identity, and must allow the caller to set it."""
    original = iam_evaluator.evaluate_trust_policy

    def evaluate(document: Any, caller: str, context: Any) -> bool:
        needed = [context]
        if identity := _source_identity.get():
            known = replace(context, service_context={**context.service_context, SOURCE_IDENTITY.lower(): identity})
            needed = [known, replace(known, action="sts:SetSourceIdentity")]
        denied = [each.action for each in needed if not original(document, caller, each)]
        for action in denied:
            log.add(Decision(False, caller, action, context.resource_arn, "The role does not trust the caller."))
        return not denied

    iam_evaluator.evaluate_trust_policy = evaluate


def _add_resources(tokens: Tokens) -> None:
    """Find the machine of a task token, and the table of a PartiQL statement."""
    original = iam_actions.extract_resource_arn

    def resource(service: str, *request: Any) -> Any:
        found = original(service, *request)
        if service == "states" and found == "*":
            *_, body, _, _, _ = request
            return tokens.machine_of(iam_actions._safe_json_field(body, "taskToken")) or found
        if service == "dynamodb" and found == "*":
            *_, body, _, _, _ = request
            statement = iam_actions._safe_json_field(body, "Statement")
            return _table_of(statement) if statement else found
        return found

    iam_actions.extract_resource_arn = resource


def _add_implied_permissions(log: DecisionLog, operators: Operators) -> None:
    """Log every decision, and check the further permissions that a request needs.

    To create a stack, the caller must also be allowed to pass its role and to read its template. To assume a role with
    tags and a source identity, the caller must also be allowed to set those.
    """
    original = iam_evaluator.enforce

    def decide(key: str, action: str, service: str, region: str, resource: str, context: dict[str, Any]) -> Any:
        denied = original(key, action, service, region, resource_arn=resource, service_context=context)
        if denied is not None or not iam_evaluator.is_root_access_key(key or ""):
            log.add(_decision(key, action, resource, denied, in_transaction=ENCLOSING_OPERATION in context))
        return denied

    def enforce(
        key: str,
        action: str,
        service: str,
        region: str,
        resource_arn: str = "*",
        service_context: dict[str, Any] | None = None,
    ) -> Any:
        action, context = _for_the_table(action, resource_arn, dict(service_context or {}))
        if service == "sqs":
            # The permission for an operation also allows the operation in batches, which has none of its own.
            action = action.removesuffix("Batch")
        denied = decide(key, action, service, region, resource_arn, context)
        if denied is None and ROLE in context:
            passed = {"iam:PassedToService": "cloudformation.amazonaws.com"}
            denied = decide(key, "iam:PassRole", "iam", region, context[ROLE], passed)
        if denied is None and TEMPLATE in context:
            denied = decide(key, "s3:GetObject", "s3", region, _object(context[TEMPLATE]), {})
        if denied is None and action == "sts:AssumeRole":
            implied = {"sts:TagSession": "aws:TagKeys", "sts:SetSourceIdentity": SOURCE_IDENTITY}
            for needed in [needed for needed, condition in implied.items() if condition in context]:
                denied = denied or decide(key, needed, service, region, resource_arn, context)
        if denied is None and service == "cloudformation":
            operators.note(resource_arn, context.get(ROLE), key)
        return denied

    iam_evaluator.enforce = enforce


def _for_the_table(action: str, resource: str, context: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The action that is needed, and the context with the partition of the row."""
    if STATEMENT in context:
        verb: str = context.pop(STATEMENT).split()[0]
        action = f"dynamodb:PartiQL{verb.capitalize()}"
    if isinstance(resource, RowArn):
        context["dynamodb:LeadingKeys"] = [resource.partition]
    return action, context


def _decision(key: str, action: str, resource: str, denied: Any, *, in_transaction: bool) -> Decision:
    if isinstance(denied, iam_evaluator.AuthError):
        return Decision(False, key, action, resource, f"{denied.code}: {denied.message}")
    principal = iam_evaluator.resolve_principal(key, ACCOUNT).arn
    reason = f"{denied.decision} {denied.reason}" if denied else ""
    return Decision(denied is None, principal, action, str(resource), reason, in_transaction)


def _table_of(statement: str) -> str:
    (name,) = re.findall(r'(?:INTO|UPDATE|FROM)\s+"([^"]+)"', statement)
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"


def _object(url: str) -> str:
    """The ARN of the object at a template's URL, which has the bucket in its path or in its host."""
    host, _, path = url.split("://", 1)[1].split("?")[0].partition("/")
    bucket = host.partition(".s3")[0] + "/" if ".s3" in host else ""
    return f"arn:aws:s3:::{bucket}{path}"
