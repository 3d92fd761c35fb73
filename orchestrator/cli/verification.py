"""What `berth verify` does, one step after the other: a tenant's life, from the first call for its queue to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection

from orchestrator.api.problems import CREDENTIALS_NOT_ENABLED
from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.control_plane import ControlPlane
from orchestrator.cli.errors import ExitCode, NothingToProve, NotProven, TimeIsUp, explain
from orchestrator.cli.get_queue import until_ready
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.ordering import in_the_way
from orchestrator.cli.problems import kind_of, problem
from orchestrator.cli.reconcile import OVER, ask_for_reconciliation, follow_reconciliation
from orchestrator.cli.reconcile_view import looked_at
from orchestrator.cli.watching import watch
from orchestrator.common.errors import BerthError
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.versions import order
from orchestrator.reconciling.records import ReconciliationStatus
from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.credentials import Access
from orchestrator.tenants.deadlines import DEADLINE

if TYPE_CHECKING:
    from orchestrator.adapters.berth_api import ApiAnswer

_DONE = 200
_STARTED = 202
_GONE = 410
_NOBODYS_REFUSAL = 500

_RECEIVE_ROUNDS = 6
"""SQS may need several long polls before it shows a message."""
_DRAIN_SECONDS = 300
_WHY = "berth verify"

_TROUBLE = (BerthError, BotoCoreError, ClientError)

_LIKELY = {
    "control plane": "Set up credentials of an operator: those of a role with the policy OperatorPolicyArn.",
    "create": (
        "Likely the role of tenants' stacks lacks a permission, or a quota of the account is reached: the events of "
        "the tenant's stack say which. Or its custom resource cannot run: see the log of TenantMetadata."
    ),
    "send": (
        "Likely the role that credentials are for may not be taken on, or the queue's key may not be used by it "
        "(berth:kmsKeyArn)."
    ),
    "receive": "Likely the same as for sending: the role that credentials are for, or the queue's key.",
    "earlier release": "Likely CloudFormation may not update the stack: its events say why.",
    "upgrade": "Likely CloudFormation may not update the stack: its events say why.",
    "retry": "Look at the log of the function that the control plane's stack names OperatorsFunctionName.",
    "reconcile": "Likely the reconciler may not list or describe stacks: its log names the call.",
    "delete": "Likely CloudFormation may not delete the queue: the events of the tenant's stack say why.",
    "gone": "Ask again in a moment: berth get-queue",
}


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
    """One tenant's life. ``api`` is the control plane's."""

    def __init__(
        self, here: Invocation, control_plane: ControlPlane, api: Api, tenant: TenantId, *, timeout: float
    ) -> None:
        self._here = here
        self._control_plane = control_plane
        self._api = api
        self._tenant = tenant
        self._timeout = timeout
        self._queue_url = ""
        self.may_be_there = False
        """Whether the tenant was asked for, and is not known to be deleted."""
        self.out_of_reach = False
        """Whether the control plane could not be reached any more. Nothing is tried then."""

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
        # What was not proven may have left messages behind. They are this tenant's own, and nobody waits for them.
        yield self._try("delete", partial(self._delete, force=failed))
        if not self.may_be_there:
            yield self._try("gone", self._ask_for_what_is_gone)

    def clear_away(self) -> None:
        """Have the tenant deleted, whatever it holds. What is going on is waited for; the delete's own end is not."""
        if not self.may_be_there:
            return
        api = self._api
        with self._here.asking(self._to_clear_away) as asking:
            answer = asking(lambda: api.delete(self._tenant, force=True, drain_seconds=None, reason=_WHY), in_the_way)
        if answer.status not in (_DONE, _STARTED) and kind_of(answer) != Refusal.UNKNOWN_TENANT:
            raise problem(answer)
        self.may_be_there = False

    # Steps: each says what it has proven, or raises

    def _look_at_control_plane(self) -> str:
        stack = self._control_plane.stack
        caller = self._control_plane.caller()
        version = stack.version or "unknown"
        return f"{stack.name} {stack.where} is {stack.status}, of version {version}, asked by {caller}"

    def _create(self) -> str:
        api = self._api
        with self._here.asking(self._timeout) as asking:
            self.may_be_there = True
            answer = asking(partial(api.get_queue, self._tenant))
            how = "getQueue created it"
            if kind_of(answer) == Refusal.UNKNOWN_TENANT:
                # The setting berth:createOnGetQueue is off.
                how = "an operator created it, since getQueue creates nobody here"
                ordered = asking(
                    partial(api.create, self._tenant, pin=None, unpin=False, labels=None, reason=_WHY), in_the_way
                )
                if ordered.status != _STARTED:
                    self.may_be_there = ordered.status >= _NOBODYS_REFUSAL
                    raise problem(ordered)
            elif answer.status not in (_DONE, _STARTED):
                # A refusal has started nothing. What fails on the way may have.
                self.may_be_there = answer.status >= _NOBODYS_REFUSAL
                raise problem(answer)
            answer = asking(partial(api.get_queue, self._tenant), until_ready(self._tenant))
            if answer.status == _STARTED:
                raise TimeIsUp(f"Not ready after {asking.seconds:.0f} s. It goes on: {answer.body.get('execution')}")
        if answer.status != _DONE:
            raise problem(answer)
        self._queue_url = str(answer.body["queueUrl"])
        return f"{how}, at version {answer.body['version']}: {self._queue_url}"

    def _send(self) -> str:
        queue = self._control_plane.queue(self._queue_url, self._credentials(Access.SEND))
        queue.send(self._tenant.value)
        return "with temporary credentials for this queue alone"

    def _receive(self) -> str:
        queue = self._control_plane.queue(self._queue_url, self._credentials(Access.RECEIVE))
        for _ in range(_RECEIVE_ROUNDS):
            if self._tenant.value in queue.receive():
                return "the message that was sent, with temporary credentials for this queue alone"
        raise NotProven("The message that was sent did not come.")

    def _to_earlier_release(self) -> str:
        api = self._api
        with self._here.asking() as asking:
            answer = asking(api.releases)
        if answer.status != _DONE:
            raise problem(answer)
        current = answer.body["current"]
        versions = [release["version"] for release in answer.body["releases"]]
        earlier = [version for version in versions if order(version) < order(current)]
        if not earlier:
            raise NothingToProve(f"{current} is the first release, so there is none before it")
        version = max(earlier, key=order)
        self._carry_out(
            partial(api.upgrade, self._tenant, version, allow_downgrade=True, allow_replacement=False, reason=_WHY)
        )
        return f"moved to {version}"

    def _upgrade(self) -> str:
        upgrade = partial(
            self._api.upgrade, self._tenant, None, allow_downgrade=False, allow_replacement=False, reason=_WHY
        )
        tenant = self._carry_out(upgrade)
        if tenant is None:
            return "it is where it should be"
        if tenant["queueUrl"] != self._queue_url:
            raise NotProven(f"The queue was {self._queue_url}, and is {tenant['queueUrl']} after the upgrade.")
        return f"moved to {tenant['version']}, with the same queue"

    def _retry(self) -> str:
        with self._here.asking() as asking:
            answer = asking(partial(self._api.retry, self._tenant, reason=_WHY))
        if kind_of(answer) != Refusal.NOTHING_TO_RETRY:
            raise problem(answer)
        return "answered that nothing has failed, and started nothing"

    def _reconcile(self) -> str:
        api = self._api
        asked = ask_for_reconciliation(self._here, api, dry_run=True, detect_drift=False, reason=_WHY)
        came = follow_reconciliation(self._here, api, asked["reconciliationId"], self._timeout)
        if came["status"] not in OVER:
            raise TimeIsUp(f"It is {came['status']}. It goes on: berth reconcile --follow {came['reconciliationId']}")
        if came["status"] != ReconciliationStatus.DONE:
            raise NotProven(f"It is {came['status']}: {came['reason']}")
        own = [finding for finding in came["findings"] if finding["subject"] == self._tenant.value]
        if own:
            raise NotProven(f"It found fault with {self._tenant}: {own[0]['kind']}, {own[0]['detail']}")
        others = came["total"]
        found = f" It found {render.counted(others, 'other thing')}: see berth reconcile --dry-run." if others else ""
        return f"a survey that changes nothing looked at {looked_at(came)}.{found}"

    def _delete(self, *, force: bool) -> str:
        # Counts of SQS lag, so the queue is given time to look empty.
        drain = None if force else _DRAIN_SECONDS
        delete = partial(self._api.delete, self._tenant, force=force, drain_seconds=drain, reason=_WHY)
        self._carry_out(delete, timeout=self._to_clear_away)
        self.may_be_there = False
        return "with its stack and its queue"

    def _ask_for_what_is_gone(self) -> str:
        with self._here.asking() as asking:
            answer = asking(partial(self._api.get_queue, self._tenant))
        if answer.status != _GONE:
            raise NotProven(f"getQueue answered {answer.status} for a tenant that was deleted, not {_GONE}.")
        return "getQueue says that the tenant was deleted, and brings nobody back"

    # What steps have in common

    @property
    def _to_clear_away(self) -> float:
        """Whatever is going on is waited for, however short the steps themselves may take."""
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
            advice = "The control plane cannot be reached any more, so nothing else is tried: see berth doctor."
        except TimeIsUp as late:
            detail, result = str(late), Result.FAILED
            advice = f"Look at it: berth tenant {self._tenant}. Or give each step longer: --timeout SECONDS"
        except _TROUBLE as error:
            failure = explain(error)
            detail, result = failure.line, Result.FAILED
            advice = " ".join((*failure.advice, *self._likely(name, failure.code)))
        return Step(name, result, detail, advice, monotonic() - began)

    @staticmethod
    def _likely(name: str, code: ExitCode) -> Iterator[str]:
        """The likely cause, unless the error itself says that the way to the control plane is the matter."""
        if code is not ExitCode.NO_CONTROL_PLANE or name == "control plane":
            yield _LIKELY[name]

    def _carry_out(self, ask: Callable[[], ApiAnswer], *, timeout: float | None = None) -> Document | None:
        """The tenant when what was asked for has ended well. ``None`` if there was nothing to do."""
        with self._here.asking(timeout or self._timeout) as asking:
            answer = asking(ask, in_the_way)
            if answer.status == _DONE:
                return None
            if answer.status != _STARTED:
                raise problem(answer, can_wait=False)
            ended = watch(answer.body, partial(self._api.tenant, self._tenant), asking)
            if ended is None:
                execution = answer.body["execution"]
                raise TimeIsUp(f"It has not ended after {asking.seconds:.0f} s. It goes on: {execution}")
        return ended

    def _credentials(self, access: Access) -> dict[str, Any]:
        with self._here.asking() as asking:
            answer = asking(partial(self._api.get_credentials, self._tenant, access))
        if kind_of(answer) == CREDENTIALS_NOT_ENABLED.kind:
            raise NothingToProve(str(answer.body["detail"]))
        if answer.status != _DONE:
            raise problem(answer)
        return dict(answer.body["credentials"])
