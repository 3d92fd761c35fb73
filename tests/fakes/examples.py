"""A few records that tests share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from orchestrator.common.stack_arns import Location
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.releases.published import stack_parameters
from orchestrator.releases.records import Release
from orchestrator.tenants.names import Names
from orchestrator.tenants.ports import OperationLedger
from orchestrator.tenants.records import (
    Attempt,
    Audit,
    Lock,
    Metadata,
    Operation,
    Queue,
    Request,
    RootCause,
    Run,
    Status,
)
from orchestrator.tenants.stack_resources import StackResource

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
VERSION = "0.1.0"
NEXT_VERSION = "0.2.0"
ACME = TenantId.parse("acme")
NAMES = Names()
"""The names of the control plane that has no name of its own."""
LOCATION = Location("aws", "eu-west-1", "000000000000")
QUEUE = Queue("arn:aws:sqs:eu-west-1:000000000000:acme-inbound", "https://sqs.eu-west-1.amazonaws.com/0/acme-inbound")
OTHER_QUEUE = Queue("arn:aws:sqs:eu-west-1:000000000000:other", "https://sqs.eu-west-1.amazonaws.com/0/other")
A_DIGEST = "d" * 64
A_KEY = "arn:aws:kms:eu-west-1:000000000000:key/1234abcd-12ab-34cd-56ef-1234567890ab"
NOTHING_MORE = Request()
EXPLICIT = Request(by="arn:aws:sts::000000000000:assumed-role/operator/ada", explicit=True)
QUEUE_TABOO = RootCause("InboundQueue", "AWS::SQS::Queue", "Access to the resource is denied.")


def an_attempt(
    number: int = 1, *, tenant: TenantId = ACME, operation: Operation = Operation.CREATE, version: str = VERSION
) -> Attempt:
    return Attempt(tenant, operation, version, number)


def a_run(
    number: int = 1,
    *,
    tenant: TenantId = ACME,
    operation: Operation = Operation.CREATE,
    version: str = VERSION,
    started_at: datetime = NOON,
    request: Request = EXPLICIT,
) -> Run:
    attempt = an_attempt(number, tenant=tenant, operation=operation, version=version)
    return Run(attempt, execution_arn(attempt.name), started_at, request)


def an_audit(
    status: Status,
    operation: Operation = Operation.CREATE,
    *,
    tenant: TenantId = ACME,
    version: str | None = VERSION,
    attempt: int = 1,
    at: datetime = NOON,
    execution: str | None = None,
    root_cause: RootCause | None = None,
    request: Request = NOTHING_MORE,
    revived_by: str | None = None,
) -> Audit:
    name = execution or execution_arn(f"{operation.lower()}-{version}-{attempt}")
    return Audit(tenant, operation, version, status, name, at, attempt, root_cause, request, revived_by)


def some_metadata(
    *, tenant: TenantId = ACME, version: str | None = VERSION, queue: Queue | None = QUEUE, **more: Any
) -> Metadata:
    return Metadata(tenant, queue, stack_arn(tenant), version, NOON, NOON, **more)


def a_release(
    version: str = VERSION,
    *,
    digest: str = A_DIGEST,
    content: str | None = None,
    notes: str = "",
    parameters: Iterable[str] = (),
    tier: str = STANDARD,
) -> Release:
    """Each version has its own content, unless one is given."""
    url = f"https://releases.s3.eu-west-1.amazonaws.com/{version}.json"
    own = f"content of {version}" if content is None else content
    return Release(version, url, digest, NOON, own, notes, frozenset(parameters), tier=tier)


def parameters_of(tenant: TenantId, release: Release | None = None) -> dict[str, str]:
    """The parameters of the release, by default of one that declares only those that every release has."""
    token = "arn:aws:lambda:eu-west-1:000000000000:function:metadata"
    return stack_parameters(tenant, release or a_release(), service_token=token, kms_key=A_KEY)


def stack_arn(tenant: TenantId = ACME, number: int = 1) -> str:
    return f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{NAMES.stack_of(tenant)}/{number}"


def a_resource(logical_id: str = "Queue", *, stack: str = "billing", number: int = 1) -> StackResource:
    """A Custom::TenantQueue in the stack of another team."""
    return StackResource.parse(f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{stack}/{number}", logical_id)


def execution_arn(name: str) -> str:
    return f"arn:aws:states:eu-west-1:000000000000:execution:create-tenant:{name}"


def take(ledger: OperationLedger, run: Run, *, instead_of: Lock | None = None) -> Lock | None:
    """Begin at the moment in which the execution started."""
    return ledger.begin(run, at=run.started_at, release=a_release(run.attempt.version), instead_of=instead_of)
