"""The checks of `berth doctor`, in order: each needs the ones before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection

from orchestrator.api.connection_routes import LIST_TROUBLES
from orchestrator.api.event_configuration_models import (
    NoParameters,
)
from orchestrator.api.event_usage_routes import LIST_PURGES
from orchestrator.api.fields import EmptyRequest
from orchestrator.api.reconciliation_routes import GET_DIAGNOSIS
from orchestrator.cli.api import Document
from orchestrator.cli.control_plane import ControlPlane, DeployedStack
from orchestrator.cli.errors import ControlPlaneNotFound, ExitCode, explain
from orchestrator.cli.events_api import ask
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.problems import problem
from orchestrator.cli.version import advice_about
from orchestrator.common.errors import BerthError
from orchestrator.reconciling.health import Check, Verdict
from orchestrator.tenants.stack_status import StackCondition, condition

_FOUND = 200
_NO_SUCH_ROUTE = 404

_CREDENTIALS = "credentials"
_CONTROL_PLANE = "control plane"
_API = "api"
_EVENT_PLANE = "event plane"
_PURGES = "purges"
_CONNECTIONS = "connections"
_MAX_NAMED = 5

_CHECK_ERRORS = (BerthError, BotoCoreError, ClientError)
"""Errors that a check reports. Any other exception is a bug of `berth`."""


class Examination:
    def __init__(self, here: Invocation) -> None:
        self._here = here
        self.out_of_reach = False
        """True if credentials are missing, or if the control plane was not found or could not be reached."""

    def checks(self) -> Iterator[Check]:
        try:
            control_plane = self._here.find()
        except _CHECK_ERRORS as error:
            yield self._failed(_CONTROL_PLANE if isinstance(error, ControlPlaneNotFound) else _CREDENTIALS, error)
            return
        credentials = self._credentials(control_plane)
        yield credentials
        if credentials.verdict is Verdict.PROBLEM:
            yield Check(_CONTROL_PLANE, Verdict.UNKNOWN, "not checked, because the credentials do not work")
            return
        try:
            stack = control_plane.stack
        except _CHECK_ERRORS as error:
            yield self._failed(_CONTROL_PLANE, error)
            yield Check(_API, Verdict.UNKNOWN, "not checked, because its URL is an output of the control plane's stack")
            return
        yield _classify(_CONTROL_PLANE, stack)
        yield from self._ask(control_plane)
        yield from self._event_plane(control_plane)

    def _credentials(self, control_plane: ControlPlane) -> Check:
        try:
            return Check(_CREDENTIALS, Verdict.OK, control_plane.caller())
        except (NoConnection, HTTPClientError) as error:
            # Some networks reach the control plane but not STS.
            return Check(_CREDENTIALS, Verdict.UNKNOWN, f"AWS STS could not be reached to check them: {error}")
        except _CHECK_ERRORS as error:
            return self._failed(_CREDENTIALS, error)

    def _ask(self, control_plane: ControlPlane) -> Iterator[Check]:
        """Check that the API answers, then add the checks that it reports."""
        try:
            api = control_plane.api()
            with self._here.retrying() as retrying:
                answer = retrying(partial(api.send_request, GET_DIAGNOSIS, EmptyRequest()))
            if answer.status == _NO_SUCH_ROUTE or (answer.status == _FOUND and "checks" not in answer.body):
                yield Check(
                    _API,
                    Verdict.PROBLEM,
                    "it has no route for the health of the control plane",
                    "It is older than this command line: deploy Berth again. Or it is not Berth's API: see --stack.",
                )
                return
            if answer.status != _FOUND:
                raise problem(answer)
        except _CHECK_ERRORS as error:
            yield self._failed(_API, error)
        else:
            yield Check(_API, Verdict.OK, f"{control_plane.api_url} answers")
            yield from map(_check_from, answer.body["checks"])

    def _event_plane(self, control_plane: ControlPlane) -> Iterator[Check]:
        """Check the stack of the event plane. Without one there is nothing to check: it can be left out."""
        try:
            yield _classify(_EVENT_PLANE, control_plane.events_stack)
            purges = self._purges(control_plane)
            yield purges
            if purges.verdict is not Verdict.UNKNOWN:
                # Otherwise the Events API did not answer, and would not answer this, either.
                yield self._connections(control_plane)
        except ControlPlaneNotFound:
            return
        except _CHECK_ERRORS as error:
            # The operators' policy of the control plane does not allow it.
            detail = f"its stack could not be read: {explain(error).line}"
            yield Check(
                _EVENT_PLANE, Verdict.UNKNOWN, detail, "Its operators' policy is its output EventOperatorPolicyArn."
            )

    def _purges(self, control_plane: ControlPlane) -> Check:
        """Check that the events of deleted tenants are deleted in time."""
        try:
            purges = ask(self._here, control_plane, LIST_PURGES, NoParameters())["purges"]
        except _CHECK_ERRORS as error:
            detail = f"the Events API did not answer: {explain(error).line}"
            return Check(
                _PURGES, Verdict.UNKNOWN, detail, "Its operators' policy is its output EventOperatorPolicyArn."
            )
        stuck = [purge["tenant_id"] for purge in purges if purge["stuck"]]
        if stuck:
            named = ", ".join(stuck[:_MAX_NAMED]) + (", ..." if len(stuck) > _MAX_NAMED else "")
            return Check(
                _PURGES,
                Verdict.PROBLEM,
                f"the events of {len(stuck)} deleted tenants are still kept, 6 hours after the delete: {named}",
                "See why: berth events purges. docs/runbook.md has the entry PurgesStuck.",
            )
        running = sum(purge["finished_at"] is None for purge in purges)
        return Check(_PURGES, Verdict.OK, f"{running} purges of deleted tenants' events are open, none is stuck")

    def _connections(self, control_plane: ControlPlane) -> Check:
        """Tell of connections whose deliveries fail or wait. Receivers are the tenants' affair, so it is no problem.

        Only a damaged record is one, since an operator has to mend it.
        """
        try:
            listed = ask(self._here, control_plane, LIST_TROUBLES, NoParameters())
        except _CHECK_ERRORS as error:
            return Check(_CONNECTIONS, Verdict.UNKNOWN, f"the Events API did not answer: {explain(error).line}")
        connections = listed["connections"]
        if not connections:
            return Check(_CONNECTIONS, Verdict.OK, "none is disabled, failing or paused")
        counts = Counter(each["trouble"] for each in connections)
        counted = ", ".join(f"{number} {trouble}" for trouble, number in counts.items())
        named = [f"{each['tenant_id']} {each['connection_id']} ({each['trouble']})" for each in connections]
        rest = ", ..." if len(named) > _MAX_NAMED else ""
        told = f"{'at least ' if listed['more'] else ''}{counted}: {', '.join(named[:_MAX_NAMED])}{rest}"
        if counts["damaged"]:
            return Check(
                _CONNECTIONS,
                Verdict.PROBLEM,
                told,
                "Deliveries to damaged connections wait until their records are mended. docs/runbook.md has the entry "
                "UnreadableRows.",
            )
        return Check(
            _CONNECTIONS,
            Verdict.OK,
            told,
            "Tell the tenants. Why: berth connections show TENANT CONNECTION_ID",
        )

    def _failed(self, name: str, error: Exception) -> Check:
        failure = explain(error)
        if failure.code is ExitCode.NO_CONTROL_PLANE:
            self.out_of_reach = True
        return Check(name, Verdict.PROBLEM, failure.line, " ".join(failure.advice))


def _classify(name: str, stack: DeployedStack) -> Check:
    advice = []
    match condition(stack.status):
        case StackCondition.DONE:
            pass
        case StackCondition.WORKING:
            advice.append("A deployment is in progress: wait until it has ended.")
        case _:
            advice.append("Its last deployment failed: see the stack's events. Fix the cause, then deploy it again.")
    if other_version := advice_about(stack.version):
        advice.append(other_version)
    return Check(
        name,
        Verdict.WARNING if advice else Verdict.OK,
        f"{stack.name} {stack.where} is {stack.status}: {stack.versions}",
        " ".join(advice),
    )


def _check_from(check: Document) -> Check:
    return Check(check["name"], Verdict(check["verdict"]), check["detail"], check["advice"] or "")
