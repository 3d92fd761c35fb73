"""The deployed control plane as different principals, and the log of their denied requests."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.deployment import events_outputs
from orchestrator.local.emulator import ACCOUNT
from tests.e2e.deployed import Deployed
from tests.e2e.enforced.decisions import Decision, DecisionLog
from tests.e2e.enforced.server import LOG
from tests.e2e.operators import call

ATTACKER = "attacker"
"""The session name of principals whose requests must be denied."""

ADOPTER = "adopter"
"""The name of the role in the setting berth:adopterArn."""

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
    def event_operator(self) -> Deployed:
        policy = events_outputs(self.root.emulator)["EventOperatorPolicyArn"]
        return self.principal("event-operator", policies=[policy])

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
        """A session of a new role with this name, these managed policies, and these statements in an inline policy."""
        iam = self.root.client("iam")
        trust = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "sts:AssumeRole"}
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=_document(trust))["Role"]["Arn"]
        for policy in policies:
            iam.attach_role_policy(RoleName=name, PolicyArn=policy)
        if statements:
            iam.put_role_policy(RoleName=name, PolicyName="inline", PolicyDocument=_document(*statements))
        return self.root.acting_as(role, ATTACKER if attacks else name)

    def function(self, name: str) -> Deployed:
        """An attacker with the role of the function."""
        configuration = self.root.client("lambda").get_function_configuration(FunctionName=self.root.function(name))
        # The role trusts only Lambda. The emulator lets the account's root assume it, too.
        return self.root.acting_as(configuration["Role"], ATTACKER)

    def with_credentials(self, tenant: TenantId, access: str) -> Any:
        """A client of SQS with the credentials to ``send`` to the tenant's queue, or to ``receive`` from it."""
        caller = {"send": self.sender, "receive": self.receiver}[access]
        response = call(caller, "POST", f"/tenants/{tenant}/queue/credentials/{access}")
        given = response.body["credentials"]
        credentials = {
            "aws_access_key_id": given["accessKeyId"],
            "aws_secret_access_key": given["secretAccessKey"],
            "aws_session_token": given["sessionToken"],
        }
        return replace(self.root, credentials=credentials).client("sqs")

    def with_event_credentials(self, issued: Mapping[str, str]) -> Any:
        """A client of DynamoDB with the credentials that were issued for a tenant's events."""
        credentials = {
            "aws_access_key_id": issued["access_key_id"],
            "aws_secret_access_key": issued["secret_access_key"],
            "aws_session_token": issued["session_token"],
        }
        return replace(self.root, credentials=credentials).client("dynamodb")

    def decisions(self) -> list[Decision]:
        return self._log.read()

    def denials(self) -> list[Decision]:
        """All denied requests so far, except those of attackers and of holders of temporary credentials."""
        ignored = re.compile(rf"/{ATTACKER}$|/berth-(send|receive|events)-")
        return [each for each in self.decisions() if not each.allowed and not ignored.search(each.principal)]

    @property
    def _log(self) -> DecisionLog:
        return DecisionLog(self.root.emulator.home / LOG)


def _document(*statements: Statement) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})
