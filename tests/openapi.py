"""The control plane's OpenAPI document, and how an API is held to it.

Requests are made from the document, and answers are checked against it, by schemathesis. It is called directly:
pyproject.toml says why not by its pytest plugin.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import hypothesis.core
import hypothesis.vendor.pretty
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import GenerationConfig
from schemathesis.core import NOT_SET
from schemathesis.core.result import Err
from schemathesis.generation.hypothesis import setup
from schemathesis.schemas import APIOperation, BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from orchestrator.api.reading import read
from orchestrator.api.reconciliation_routes import START_RECONCILIATION
from orchestrator.api.rollout_models import MAX_CONCURRENCY
from orchestrator.api.rollout_routes import START_ROLLOUT
from orchestrator.common.errors import InvalidRequest, InvalidTenantId
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import ID_PATTERN
from orchestrator.common.versions import VERSION_PATTERN
from orchestrator.rollouts.documents import REST
from tests.documents import CONTROL_PLANE

# schemathesis blanks Hypothesis' printer for the whole process: any property test that fails would say "x=," in place
# of its value. It does so once; the printer is put back after that.
setup()
hypothesis.core.RepresentationPrinter = hypothesis.vendor.pretty.RepresentationPrinter  # type: ignore[attr-defined]

Operation = APIOperation[Any, Any, Any, Any]
Check = Callable[..., Any]

DOCUMENT = CONTROL_PLANE.json

CHECKS: Sequence[Check] = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    positive_data_acceptance,
    negative_data_rejection,
)

# Whether a well-formed request can be granted is another matter than whether it was understood.
_CONFIG = {
    "checks": {
        "positive_data_acceptance": {"expected-statuses": ["2xx", "403", "404", "409", "410", "422", "424"]},
        # 404: a tenant id with a slash in it makes another path.
        "negative_data_rejection": {"expected-statuses": ["400", "404"]},
    }
}


def load(document: dict[str, Any]) -> BaseSchema:
    # Signing is the client's business: no request is to be made up with another Authorization.
    unsigned = {name: part for name, part in document.items() if name != "security"}
    return schemathesis.openapi.from_dict(unsigned, config=schemathesis.Config.from_dict(_CONFIG))


def operations(document: dict[str, Any]) -> dict[str, Operation]:
    """The operations of the document, by operationId."""
    found: dict[str, Operation] = {}
    for result in load(document).get_all_operations():
        if isinstance(result, Err):
            raise result.err()
        found[result.ok().definition.raw["operationId"]] = result.ok()
    return found


@dataclass(frozen=True)
class AtHand:
    """The ids of things that exist. Requests use only these of the many ids that could be made up."""

    tenants: Sequence[str]
    rollouts: Sequence[str]
    reconciliations: Sequence[str]
    releases: Sequence[str] = ("9998.0.0",)
    """By default none that was ever published: withdrawing one would concern every tenant."""
    most_at_once: int = MAX_CONCURRENCY
    """The maximum number of tenants that the control plane moves at once."""
    only_dry_runs: bool = False
    """Nothing is rolled out or reconciled but in dry runs; and rolled out only to the tenants at hand."""


def drive(
    operation: Operation,
    mode: GenerationMode,
    session: requests.Session,
    base_url: str,
    *,
    at_hand: AtHand,
    checks: Sequence[Check] = CHECKS,
    max_examples: int,
) -> Counter[int]:
    """Send requests made from the document, valid or invalid ones. Fails at the first answer that it does not allow."""
    seen: Counter[int] = Counter()

    @settings(
        max_examples=max_examples,
        # Without `explain`, which would send the failing request many times more.
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation.as_strategy(generation_mode=mode),
        tenant=st.sampled_from(at_hand.tenants),
        rollout=st.sampled_from(at_hand.rollouts),
        reconciliation=st.sampled_from(at_hand.reconciliations),
        release=st.sampled_from(at_hand.releases),
    )
    def ask(case: Case[Any], tenant: str, rollout: str, reconciliation: str, release: str) -> None:
        # A body of blanks is not JSON, but Berth reads it like a missing body, which some routes accept.
        assume(not _is_blank(case.body))
        _keep_to(at_hand, case, tenant, rollout, reconciliation, release)
        seen[_answered(case, session, base_url, checks)] += 1

    ask()
    return seen


def cover(
    operation: Operation,
    session: requests.Session,
    base_url: str,
    *,
    at_hand: AtHand,
    checks: Sequence[Check] = CHECKS,
) -> Counter[int]:
    """The same with every boundary of the document in turn: least, most, one more, left out, of another type."""
    seen: Counter[int] = Counter()
    cases = operation.schema.iter_coverage_cases(
        operation, generation_modes=list(GenerationMode), generation_config=GenerationConfig()
    )
    ids = (at_hand.tenants, at_hand.rollouts, at_hand.reconciliations, at_hand.releases)
    everybody = (itertools.cycle(each) for each in ids)
    for case, tenant, rollout, reconciliation, release in zip(cases, *everybody, strict=False):
        if case.method.upper() == operation.method.upper():
            _keep_to(at_hand, case, tenant, rollout, reconciliation, release)
            seen[_answered(case, session, base_url, checks)] += 1
    return seen


def _keep_to(at_hand: AtHand, case: Case[Any], tenant: str, rollout: str, reconciliation: str, release: str) -> None:
    """Ask about what is at hand, and as no document can say that one has to."""
    # Each new tenant would get a stack.
    if _is_tenant_id(case.path_parameters.get("tenantId")):
        case.path_parameters["tenantId"] = tenant
    if re.fullmatch(ID_PATTERN, str(case.path_parameters.get("rolloutId"))):
        case.path_parameters["rolloutId"] = rollout
    if re.fullmatch(ID_PATTERN, str(case.path_parameters.get("reconciliationId"))):
        case.path_parameters["reconciliationId"] = reconciliation
    if re.fullmatch(VERSION_PATTERN, str(case.path_parameters.get("version"))):
        case.path_parameters["version"] = release
    # A cursor comes from the page before. No document can say which ones there are.
    if case.meta is not None and case.meta.generation.mode.is_positive:
        case.query.pop("cursor", None)
    if case.operation.definition.raw["operationId"] == "startRollout":
        _keep_spec_to(at_hand, case, rollout)
    if case.operation.definition.raw["operationId"] == "changeRollout":
        _keep_change_to(at_hand, case)
    if (
        case.operation.definition.raw["operationId"] in ("startReconciliation", "startAdoption")
        and at_hand.only_dry_runs
    ):
        _keep_dry(case)


def _keep_change_to(at_hand: AtHand, case: Case[Any]) -> None:
    """The limit of the control plane is in no document."""
    body: Any = {} if case.body is NOT_SET else case.body
    if case.meta is not None and case.meta.generation.mode.is_positive and "maxConcurrency" in body:
        case.body = {**body, "maxConcurrency": min(body["maxConcurrency"], at_hand.most_at_once)}


def _keep_dry(case: Case[Any]) -> None:
    """Make a valid request for a rollout a dry run. Invalid requests are sent as they are."""
    body: Any = {} if case.body is NOT_SET else case.body
    try:
        read(START_RECONCILIATION, {"body": json.dumps(body)})
    except (InvalidRequest, TypeError):
        return
    case.body, case.media_type = {"dryRun": True}, "application/json"


def _keep_spec_to(at_hand: AtHand, case: Case[Any], rollout: str) -> None:
    spec: Any = {} if case.body is NOT_SET else copy.deepcopy(case.body)
    if case.meta is not None and case.meta.generation.mode.is_positive:
        stages = spec.get("stages", [])
        for number, stage in enumerate(stages, 1):
            stage["size"] = REST if number == len(stages) else "10%"
            if "maxConcurrency" in stage:
                stage["maxConcurrency"] = min(stage["maxConcurrency"], at_hand.most_at_once)
        if "undo" in spec:
            spec["undo"] = rollout
    if at_hand.only_dry_runs and _is_spec(spec, at_hand.most_at_once):
        spec["dryRun"] = True
        if "undo" not in spec:
            spec["tenants"] = list(at_hand.tenants)
        case.body, case.media_type = spec, "application/json"
    elif case.body is not NOT_SET:
        case.body = spec


def _is_spec(body: object, most_at_once: int) -> bool:
    """Whether a rollout would come of it. What would be refused is sent as it is."""
    try:
        read(START_ROLLOUT, {"body": json.dumps(body)}).spec(max_concurrency=most_at_once)
    except (InvalidRequest, TypeError):
        return False
    return True


def _answered(case: Case[Any], session: requests.Session, base_url: str, checks: Sequence[Check]) -> int:
    response = case.call_and_validate(base_url=base_url, session=session, checks=list(checks), timeout=60)
    return int(response.status_code)


def _is_blank(body: object) -> bool:
    sent = getattr(body, "data", body)
    return isinstance(sent, str | bytes) and bool(sent) and not sent.strip()


def _is_tenant_id(value: object) -> bool:
    try:
        TenantId.parse(value)
    except InvalidTenantId:
        return False
    return True
