"""The steps of `berth verify`: one tenant is created, used, upgraded, reconciled and deleted.

The event plane, if there is one, is tested with the same tenant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection

from orchestrator.api.fields import EmptyRequest, TenantIdRequest
from orchestrator.api.problems import CREDENTIALS_NOT_ENABLED
from orchestrator.api.queue_routes import CREDENTIAL_ROUTES, GET_QUEUE
from orchestrator.api.reconciliation_routes import StartReconciliation
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.tenant_models import CreateTenant, DeleteTenant, GetTenant, RetryTenant, UpgradeTenant
from orchestrator.api.tenant_routes import (
    CREATE_TENANT,
    DELETE_TENANT,
    GET_TENANT,
    RETRY_TENANT,
    UPGRADE_TENANT,
)
from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.control_plane import ControlPlane, UsableQueue
from orchestrator.cli.errors import ExitCode, NothingToProve, NotProven, TimeIsUp, explain
from orchestrator.cli.event_verification import EventVerification
from orchestrator.cli.get_queue import until_ready
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.ordering import in_the_way
from orchestrator.cli.problems import kind_of, problem
from orchestrator.cli.reconcile import OVER, follow_reconciliation, start_reconciliation
from orchestrator.cli.reconcile_view import checked
from orchestrator.cli.watching import watch
from orchestrator.common.errors import BerthError
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.versions import order
from orchestrator.reconciling.records import ReconciliationStatus
from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.credentials import Access
from orchestrator.tenants.deadlines import DEADLINE

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

_DONE = 200
_STARTED = 202
_GONE = 410
_SERVER_ERROR = 500

_RECEIVE_ROUNDS = 6
"""SQS may need several long polls before it shows a message."""
_DRAIN_SECONDS = 300
_WHY = "berth verify"

_TROUBLE = (BerthError, BotoCoreError, ClientError)

_LIKELY = {
    "control plane": "Use an operator's credentials: those of a role with the policy OperatorPolicyArn.",
    "create": (
        "Likely causes: the role of the tenants' stacks lacks a permission, or a quota of the account is reached (see "
        "the events of the tenant's stack); or its custom resource cannot run (see the log of TenantMetadata)."
    ),
    "send": (
        "Likely causes: the queue access role cannot be assumed, or it may not use the queue's key (berth:kmsKeyArn)."
    ),
    "receive": "Likely causes: the queue access role cannot be assumed, or it may not use the queue's key.",
    "events": (
        "Likely causes: the caller lacks the policy EventOperatorPolicyArn, or a function of the event plane failed: "
        "see its log."
    ),
    "delivery": (
        "Likely causes: a function that dispatches or delivers events failed (see the logs of dispatch_events and "
        "deliver_events), or may not send to the queue, or use its key."
    ),
    "revoked key": "See the log of the function that is the output TenantEventsFunctionName of the event plane.",
    "earlier release": "Likely cause: CloudFormation may not update the stack. See the stack's events.",
    "upgrade": "Likely cause: CloudFormation may not update the stack. See the stack's events.",
    "retry": "See the log of the function that is the output OperatorsFunctionName of the control plane's stack.",
    "reconcile": "Likely cause: the reconciler may not list or describe stacks. Its log names the call.",
    "delete": "Likely cause: CloudFormation may not delete the queue. See the events of the tenant's stack.",
    "gone": "Try again in a moment: berth get-queue",
}
"""The likely cause of each step's failure."""


class Result(StrEnum):
    PROVEN = "proven"
    FAILED = "failed"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    result: Result
    detail: str
    advice: str = ""
    seconds: float = 0.0


class Verification:
    """The test of one deployment, with one tenant. ``api`` is the control plane's API."""

    def __init__(
        self, here: Invocation, control_plane: ControlPlane, api: Api, tenant: TenantId, *, timeout: float
    ) -> None:
        self._here = here
        self._control_plane = control_plane
        self._api = api
        self._tenant = tenant
        self._timeout = timeout
        self._queue_url = ""
        self._receiving: UsableQueue | None = None
        """The tenant's queue with credentials to receive, once a message was received."""
        self._events = EventVerification(here, control_plane, tenant)
        self.may_be_there = False
        """True from the request that creates the tenant until the tenant is known to be deleted."""
        self.out_of_reach = False
        """True once the control plane could not be reached. No further step is tried then."""

    def steps(self) -> Iterator[Step]:
        yield self._try("control plane", self._look_at_control_plane)
        created = self._try("create", self._create)
        yield created
        if self.out_of_reach or (created.result is Result.FAILED and not self.may_be_there):
            return
        served = created.result is Result.PROVEN
        alive: dict[str, Callable[[], str]] = {
            "send": self._send,
            "receive": self._receive,
            "events": lambda: self._events.accept(to_queue=self._receiving is not None),
            "delivery": lambda: self._events.receive(self._receiving),
            "revoked key": self._events.use_revoked_key,
            "earlier release": self._to_earlier_release,
            "upgrade": self._upgrade,
            "retry": self._retry,
        }
        failed = not served
        for name, work in alive.items():
            step = self._try(name, work) if served else Step(name, Result.LEFT_OUT, "the tenant has no queue")
            failed = failed or step.result is Result.FAILED
            yield step
            if self.out_of_reach:
                return
        yield self._try("reconcile", self._reconcile)
        if self.out_of_reach:
            return
        # A failed step may have left messages in the queue. They are test messages, so they may be deleted.
        yield self._try("delete", partial(self._delete, force=failed))
        if not self.may_be_there:
            yield self._try("gone", self._get_deleted_queue)

    def clear_away(self) -> None:
        """Delete the tenant with its messages. Waits for a running operation to end, but not for the delete itself."""
        if not self.may_be_there:
            return
        api = self._api
        with self._here.retrying(self._to_clear_away) as retrying:
            answer = retrying(
                partial(
                    api.send_request, DELETE_TENANT, DeleteTenant(tenant_id=self._tenant.value, force=True, reason=_WHY)
                ),
                in_the_way,
            )
        if answer.status not in (_DONE, _STARTED) and kind_of(answer) != Refusal.UNKNOWN_TENANT:
            raise problem(answer)
        self.may_be_there = False

    # The steps. Each returns what it has proven, or raises an error.

    def _look_at_control_plane(self) -> str:
        stack = self._control_plane.stack
        caller = self._control_plane.caller()
        return f"{stack.name} {stack.where} is {stack.status}: {stack.versions}, called by {caller}"

    def _create(self) -> str:
        api = self._api
        with self._here.retrying(self._timeout) as retrying:
            self.may_be_there = True
            answer = retrying(partial(api.send_request, GET_QUEUE, self._named))
            how = "getQueue created it"
            if kind_of(answer) == Refusal.UNKNOWN_TENANT:
                # The setting berth:createOnGetQueue is off.
                how = "berth create created it, because getQueue creates no tenants here"
                ordered = retrying(
                    partial(api.send_request, CREATE_TENANT, CreateTenant(tenant_id=self._tenant.value, reason=_WHY)),
                    in_the_way,
                )
                if ordered.status != _STARTED:
                    self.may_be_there = ordered.status >= _SERVER_ERROR
                    raise problem(ordered)
            elif answer.status not in (_DONE, _STARTED):
                # A refused request (4xx) has started nothing. A failed one (5xx) may have.
                self.may_be_there = answer.status >= _SERVER_ERROR
                raise problem(answer)
            answer = retrying(partial(api.send_request, GET_QUEUE, self._named), until_ready(self._tenant))
            if answer.status == _STARTED:
                execution = answer.body.get("execution")
                raise TimeIsUp(f"Not ready after {retrying.seconds:.0f} s. Provisioning continues: {execution}")
        if answer.status != _DONE:
            raise problem(answer)
        self._queue_url = str(answer.body["queueUrl"])
        return f"{how}, at version {answer.body['version']}: {self._queue_url}"

    def _send(self) -> str:
        queue = self._control_plane.queue(self._queue_url, self._credentials(Access.SEND))
        queue.send(self._tenant.value)
        return "sent a message, with temporary credentials for this queue only"

    def _receive(self) -> str:
        queue = self._control_plane.queue(self._queue_url, self._credentials(Access.RECEIVE))
        for _ in range(_RECEIVE_ROUNDS):
            if self._tenant.value in queue.receive():
                self._receiving = queue
                return "received the message, with temporary credentials for this queue only"
        raise NotProven("The message that was sent was not received.")

    def _to_earlier_release(self) -> str:
        api = self._api
        with self._here.retrying() as retrying:
            answer = retrying(partial(api.send_request, LIST_RELEASES, EmptyRequest()))
        if answer.status != _DONE:
            raise problem(answer)
        current = answer.body["current"]
        versions = [release["version"] for release in answer.body["releases"]]
        earlier = [version for version in versions if order(version) < order(current)]
        if not earlier:
            raise NothingToProve(f"{current} is the first release, so there is no earlier one")
        version = max(earlier, key=order)
        self._carry_out(
            partial(
                api.send_request,
                UPGRADE_TENANT,
                UpgradeTenant(tenant_id=self._tenant.value, version=version, allow_downgrade=True, reason=_WHY),
            )
        )
        return f"moved to {version}"

    def _upgrade(self) -> str:
        upgrade = partial(
            self._api.send_request, UPGRADE_TENANT, UpgradeTenant(tenant_id=self._tenant.value, reason=_WHY)
        )
        tenant = self._carry_out(upgrade)
        if tenant is None:
            raise NothingToProve("the tenant is at its release already")
        if tenant["queueUrl"] != self._queue_url:
            raise NotProven(f"The upgrade changed the queue from {self._queue_url} to {tenant['queueUrl']}.")
        return f"moved to {tenant['version']}, with the same queue"

    def _retry(self) -> str:
        with self._here.retrying() as retrying:
            answer = retrying(
                partial(self._api.send_request, RETRY_TENANT, RetryTenant(tenant_id=self._tenant.value, reason=_WHY))
            )
        if kind_of(answer) != Refusal.NOTHING_TO_RETRY:
            raise problem(answer)
        return "refused, because no operation has failed"

    def _reconcile(self) -> str:
        api = self._api
        started = start_reconciliation(self._here, api, StartReconciliation(dry_run=True, reason=_WHY))
        result = follow_reconciliation(self._here, api, started["reconciliationId"], self._timeout)
        if result["status"] not in OVER:
            raise TimeIsUp(
                f"The reconciliation is still {result['status']}. "
                f"Follow it: berth reconcile --follow {result['reconciliationId']}"
            )
        if result["status"] != ReconciliationStatus.DONE:
            raise NotProven(f"The reconciliation is {result['status']}: {result['reason']}")
        own = [finding for finding in result["findings"] if finding["subject"] == self._tenant.value]
        if own:
            raise NotProven(f"A finding about {self._tenant}: {own[0]['kind']}, {own[0]['detail']}")
        others = render.counted(result["total"], "other finding")
        more = f" It has {others}: see berth reconcile --dry-run." if result["total"] else ""
        return f"a dry run checked {checked(result)}.{more}"

    def _delete(self, *, force: bool) -> str:
        # SQS counts messages with a delay, so the queue may not be reported empty at once.
        drain = 0 if force else _DRAIN_SECONDS
        asked = DeleteTenant(tenant_id=self._tenant.value, force=force, drain_seconds=drain, reason=_WHY)
        delete = partial(self._api.send_request, DELETE_TENANT, asked)
        self._carry_out(delete, timeout=self._to_clear_away)
        self.may_be_there = False
        return "deleted the tenant, its stack and its queue"

    def _get_deleted_queue(self) -> str:
        with self._here.retrying() as retrying:
            answer = retrying(partial(self._api.send_request, GET_QUEUE, self._named))
        if answer.status != _GONE:
            raise NotProven(f"getQueue answered {answer.status} for a deleted tenant, not {_GONE}.")
        return "getQueue reports that the tenant was deleted, and does not create it again"

    # Used by several steps.

    @property
    def _named(self) -> TenantIdRequest:
        return TenantIdRequest(tenant_id=self._tenant.value)

    @property
    def _to_clear_away(self) -> float:
        """The timeout of the delete: long enough for a running operation to end, even if --timeout is short."""
        return max(self._timeout, DEADLINE.total_seconds())

    def _try(self, name: str, work: Callable[[], str]) -> Step:
        monotonic = self._here.world.monotonic
        began = monotonic()
        try:
            detail, result, advice = work(), Result.PROVEN, ""
        except NothingToProve as left_out:
            detail, result, advice = str(left_out), Result.LEFT_OUT, ""
        except (NoConnection, HTTPClientError) as error:
            self.out_of_reach = True
            detail, result = explain(error).line, Result.FAILED
            advice = "The control plane cannot be reached, so the remaining steps are not tried: see berth doctor."
        except TimeIsUp as late:
            detail, result = str(late), Result.FAILED
            advice = f"See: berth tenant {self._tenant}. Or give each step more time: --timeout SECONDS"
        except _TROUBLE as error:
            failure = explain(error)
            detail, result = failure.line, Result.FAILED
            advice = " ".join((*failure.advice, *self._likely(name, failure.code)))
        return Step(name, result, detail, advice, monotonic() - began)

    @staticmethod
    def _likely(name: str, code: ExitCode) -> Iterator[str]:
        """The likely cause, unless the error already says that the control plane could not be reached."""
        if code is not ExitCode.NO_CONTROL_PLANE or name == "control plane":
            yield _LIKELY[name]

    def _carry_out(self, ask: Callable[[], ApiAnswer], *, timeout: float | None = None) -> Document | None:
        """Send the request and wait. Returns the tenant once its operation succeeded, ``None`` if none was needed."""
        with self._here.retrying(timeout or self._timeout) as retrying:
            answer = retrying(ask, in_the_way)
            if answer.status == _DONE:
                return None
            if answer.status != _STARTED:
                raise problem(answer, can_wait=False)
            look = GetTenant(tenant_id=self._tenant.value)
            ended = watch(answer.body, partial(self._api.send_request, GET_TENANT, look), retrying)
            if ended is None:
                execution = answer.body["execution"]
                raise TimeIsUp(f"The operation is still running after {retrying.seconds:.0f} s: {execution}")
        return ended

    def _credentials(self, access: Access) -> dict[str, Any]:
        with self._here.retrying() as retrying:
            answer = retrying(partial(self._api.send_request, CREDENTIAL_ROUTES[access], self._named))
        if kind_of(answer) == CREDENTIALS_NOT_ENABLED.kind:
            raise NothingToProve(str(answer.body["detail"]))
        if answer.status != _DONE:
            raise problem(answer)
        return dict(answer.body["credentials"])
