"""The deployed control plane as different principals see it, and what was denied to them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.emulator import ACCOUNT
from tests.e2e.deployed import Deployed
from tests.e2e.enforced.decisions import Decision, DecisionLog
from tests.e2e.enforced.server import LOG
from tests.e2e.operators import call

ATTACKER = "attacker"
"""The session of whoever tries what has to be denied."""

Statement = Mapping[str, Any]


@dataclass(frozen=True)
class Enforced:
    root: Deployed

    @cached_property
    def platform(self) -> Deployed:
        return self.principal("platform", policies=[self.root.outputs["PlatformPolicyArn"]])

    @cached_property
    def operator(self) -> Deployed:
        return self.principal("operator", policies=[self.root.outputs["OperatorPolicyArn"]])

    @cached_property
    def sender(self) -> Deployed:
        return self.principal("sender", policies=[self.root.outputs["SenderPolicyArn"]])

    @cached_property
    def receiver(self) -> Deployed:
        return self.principal("receiver", policies=[self.root.outputs["ReceiverPolicyArn"]])

    def principal(
        self,
        name: str,
        *,
        policies: Sequence[str] = (),
        statements: Sequence[Statement] = (),
        attacks: bool = False,
    ) -> Deployed:
        """Whoever has taken on a new role of that name, with these managed policies and these statements of its own."""
        iam = self.root.client("iam")
        trust = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "sts:AssumeRole"}
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=_document(trust))["Role"]["Arn"]
        for policy in policies:
            iam.attach_role_policy(RoleName=name, PolicyArn=policy)
        if statements:
            iam.put_role_policy(RoleName=name, PolicyName="inline", PolicyDocument=_document(*statements))
        return self.root.acting_as(role, ATTACKER if attacks else name)

    def function(self, name: str) -> Deployed:
        """Whoever has taken over the function whose handler is in that file of ``lambdas/``."""
        configuration = self.root.client("lambda").get_function_configuration(FunctionName=self.root.function(name))
        # The role trusts Lambda only; the emulator lets the account's root stand in for a service.
        return self.root.acting_as(configuration["Role"], ATTACKER)

    def with_credentials(self, tenant: TenantId, access: str) -> Any:
        """SQS, as whoever holds the credentials to ``send`` to the tenant's queue or to ``receive`` from it."""
        asking = {"send": self.sender, "receive": self.receiver}[access]
        answer = call(asking, "POST", f"/tenants/{tenant}/queue/credentials/{access}")
        given = answer.body["credentials"]
        credentials = {
            "aws_access_key_id": given["accessKeyId"],
            "aws_secret_access_key": given["secretAccessKey"],
            "aws_session_token": given["sessionToken"],
        }
        return replace(self.root, credentials=credentials).client("sqs")

    def decisions(self) -> list[Decision]:
        return self._log.read()

    def denials(self) -> list[Decision]:
        """What was denied so far, to anybody who did not attack.

        Whoever holds credentials for a queue is told by SQS, and not counted here.
        """
        outside = re.compile(rf"/{ATTACKER}$|/berth-(send|receive)-")
        return [each for each in self.decisions() if not each.allowed and not outside.search(each.principal)]

    @property
    def _log(self) -> DecisionLog:
        return DecisionLog(self.root.emulator.home / LOG)


def _document(*statements: Statement) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})
