"""What `berth doctor` looks at, one after the other: each needs those before it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection

from orchestrator.cli.api import Document
from orchestrator.cli.control_plane import ControlPlane, DeployedStack
from orchestrator.cli.errors import ControlPlaneNotFound, ExitCode, explain
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.problems import problem
from orchestrator.common.errors import BerthError
from orchestrator.reconciling.health import Check, Verdict
from orchestrator.tenants.stack_status import StackCondition, condition

_FOUND = 200
_NO_SUCH_ROUTE = 404

_CREDENTIALS = "credentials"
_CONTROL_PLANE = "control plane"
_API = "api"

_TROUBLE = (BerthError, BotoCoreError, ClientError)
"""What may be wrong with what is looked at. Everything else is wrong with `berth`."""


class Examination:
    def __init__(self, here: Invocation) -> None:
        self._here = here
        self.out_of_reach = False
        """Whether credentials, the control plane or the way to it are missing."""

    def checks(self) -> Iterator[Check]:
        try:
            control_plane = self._here.find()
        except _TROUBLE as error:
            yield self._trouble(_CONTROL_PLANE if isinstance(error, ControlPlaneNotFound) else _CREDENTIALS, error)
            return
        credentials = self._credentials(control_plane)
        yield credentials
        if credentials.verdict is Verdict.PROBLEM:
            yield Check(_CONTROL_PLANE, Verdict.UNKNOWN, "not looked for: that takes credentials")
            return
        try:
            stack = control_plane.stack
        except _TROUBLE as error:
            yield self._trouble(_CONTROL_PLANE, error)
            yield Check(_API, Verdict.UNKNOWN, "not asked: where it is says the control plane's stack")
            return
        yield _judge(stack)
        yield from self._ask(control_plane)

    def _credentials(self, control_plane: ControlPlane) -> Check:
        try:
            return Check(_CREDENTIALS, Verdict.OK, control_plane.caller())
        except (NoConnection, HTTPClientError) as error:
            # There are networks that lead to the control plane, and not to STS.
            return Check(_CREDENTIALS, Verdict.UNKNOWN, f"AWS could not be asked whose they are: {error}")
        except _TROUBLE as error:
            return self._trouble(_CREDENTIALS, error)

    def _ask(self, control_plane: ControlPlane) -> Iterator[Check]:
        """What the API says, which is also whether it answers."""
        try:
            api = control_plane.api()
            with self._here.asking() as asking:
                answer = asking(api.health)
            if answer.status == _NO_SUCH_ROUTE or (answer.status == _FOUND and "checks" not in answer.body):
                yield Check(
                    _API,
                    Verdict.PROBLEM,
                    "it cannot say how the control plane is",
                    "It is older than this command line: deploy Berth again. Or it is not Berth's: see --stack.",
                )
                return
            if answer.status != _FOUND:
                raise problem(answer)
        except _TROUBLE as error:
            yield self._trouble(_API, error)
        else:
            yield Check(_API, Verdict.OK, f"{control_plane.api_url} answers")
            yield from map(_told, answer.body["checks"])

    def _trouble(self, name: str, error: Exception) -> Check:
        failure = explain(error)
        if failure.code is ExitCode.NO_CONTROL_PLANE:
            self.out_of_reach = True
        return Check(name, Verdict.PROBLEM, failure.line, " ".join(failure.advice))


def _judge(stack: DeployedStack) -> Check:
    ours = metadata.version("berth")
    advice = []
    match condition(stack.status):
        case StackCondition.DONE:
            pass
        case StackCondition.WORKING:
            advice.append("CloudFormation is at it: wait until that is over.")
        case _:
            advice.append("Its last deployment failed: the stack's events say why. Then deploy it again.")
    if stack.version != ours:
        advice.append(f"This command line is of version {ours}: install the other one, or deploy this one.")
    return Check(
        _CONTROL_PLANE,
        Verdict.WARNING if advice else Verdict.OK,
        f"{stack.name} {stack.where} is {stack.status}, of version {stack.version or 'unknown'}",
        " ".join(advice),
    )


def _told(check: Document) -> Check:
    return Check(check["name"], Verdict(check["verdict"]), check["detail"], check["advice"] or "")
