"""The customer's own key, where there is one: what is encrypted with it, and who may use it for what.

The key's own policy is the customer's. It lets the account's roles use the key as far as their policies say, and lets
those services use it that come in their own name: the README has the statements.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from aws_cdk import Aws, CfnResource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IConstruct

from orchestrator.tenants.credentials import KEY_ACTIONS, Access
from stacks.common.permissions import statement

# DynamoDB uses the key in the name of whoever reads or writes the table.
_READING_TABLE = ("kms:Decrypt", "kms:DescribeKey")
_WRITING_TABLE = ("kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo")
_READING_OBJECTS = ("kms:Decrypt",)
_WRITING_OBJECTS = ("kms:GenerateDataKey",)


class Encryption(Construct):
    """Without a key everything is encrypted with keys of AWS, which everybody may use who may use the resource."""

    def __init__(
        self, scope: Construct, construct_id: str, *, key_arn: str | None, former_key_arns: Sequence[str] = ()
    ) -> None:
        super().__init__(scope, construct_id)
        self.key_arn = key_arn
        self._former_key_arns = [arn for arn in dict.fromkeys(former_key_arns) if arn != key_arn]
        self.key = kms.Key.from_key_arn(self, "Key", key_arn) if key_arn else None
        self._given: set[tuple[str, str, str]] = set()
        """What each role, by its path, may do by way of each service."""
        self._policies: dict[str, iam.Policy] = {}
        """The policy of each role, by its path, that lets it use the key."""
        self._encrypted: list[CfnResource] = []

    @property
    def environment(self) -> dict[str, str]:
        """What a function is told that gives the key to others."""
        return {"BERTH_KMS_KEY": self.key_arn} if self.key_arn else {}

    @property
    def former_environment(self) -> dict[str, str]:
        """The same of the keys from before this one."""
        return {"BERTH_FORMER_KMS_KEYS": ",".join(self._former_key_arns)} if self._former_key_arns else {}

    def queue(self, scope: Construct, construct_id: str, **settings: Any) -> sqs.Queue:
        queue = sqs.Queue(
            scope,
            construct_id,
            encryption=None if self.key_arn else sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            **settings,
        )
        if self.key_arn:
            # Not by the construct: it would let whoever uses the queue use the key for anything.
            resource = queue.node.default_child
            assert isinstance(resource, sqs.CfnQueue)  # noqa: S101 - what the construct is made of
            resource.kms_master_key_id = self.key_arn
            resource.sqs_managed_sse_enabled = False
            self.comes_after_policies(queue)
        return queue

    def comes_after_policies(self, encrypted: IConstruct) -> None:
        """Have something encrypted with the key only when everybody may use the key who needs it for that.

        A deployment may bring the key to a control plane that is at work. This holds within a stack: another stack,
        which uses something encrypted of this one, is deployed after it, and its roles may use the key only then.
        """
        if self.key_arn is None:
            return
        resource = _resource_of(encrypted)
        self._encrypted.append(resource)
        for policy in self._policies.values():
            _wait_for(policy, resource)

    def allow_table(self, role: iam.Role, *, writing: bool) -> None:
        self._allow(role, "dynamodb", [*_READING_TABLE, *(_WRITING_TABLE if writing else ())])

    def allow_objects(self, role: iam.Role, *, writing: bool) -> None:
        self._allow(role, "s3", [*_READING_OBJECTS, *(_WRITING_OBJECTS if writing else ())])

    def allow_queues(self, role: iam.Role, *accesses: Access) -> None:
        self._allow(role, "sqs", [action for access in accesses for action in KEY_ACTIONS[access]])

    def allow_queues_of_before(self, role: iam.Role, *accesses: Access) -> None:
        """Let a role use queues, and messages in them, that are still encrypted with a former key."""
        actions = list(dict.fromkeys(action for access in accesses for action in KEY_ACTIONS[access]))
        for arn in self._former_key_arns:
            # Not the policy that the deployment with that key has made: it stays as it is, and goes last.
            policy = iam.Policy(role, f"Former{_id_of(arn)}", roles=[role])
            policy.add_statements(statement(actions, [arn], _via("sqs")))

    def _allow(self, role: iam.Role, service: str, actions: Sequence[str]) -> None:
        """Let a role use the key by way of that service, and not by itself. Once, however often that is asked for."""
        if self.key_arn is None:
            return
        path = role.node.path
        further = [action for action in dict.fromkeys(actions) if (path, service, action) not in self._given]
        self._given |= {(path, service, action) for action in further}
        if further:
            self._policy_of(role, self.key_arn).add_statements(statement(further, [self.key_arn], _via(service)))

    def _policy_of(self, role: iam.Role, key_arn: str) -> iam.Policy:
        """A policy for the key alone, because the role's other policy names the table and so comes after the table.

        With another key it is another resource. CloudFormation removes the former one at the end of the deployment,
        when nothing is encrypted with the former key any more.
        """
        path = role.node.path
        if path not in self._policies:
            policy = iam.Policy(role, _id_of(key_arn), roles=[role])
            self._policies[path] = policy
            for resource in self._encrypted:
                _wait_for(policy, resource)
        return self._policies[path]


def _via(service: str) -> dict[str, dict[str, str]]:
    return {"StringEquals": {"kms:ViaService": f"{service}.{Aws.REGION}.{Aws.URL_SUFFIX}"}}


def _id_of(key_arn: str) -> str:
    return f"Key{hashlib.sha256(key_arn.encode()).hexdigest()[:8]}"


def _wait_for(policy: iam.Policy, encrypted: CfnResource) -> None:
    """Encrypt a resource after a policy of the same stack is there."""
    if policy.stack.node.path == encrypted.stack.node.path:
        encrypted.add_dependency(_resource_of(policy))


def _resource_of(construct: IConstruct) -> CfnResource:
    resource = construct.node.default_child
    assert isinstance(resource, CfnResource)  # noqa: S101 - what the construct is made of
    return resource
