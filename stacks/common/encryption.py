"""The customer's own KMS key, if it is set: the resources that it encrypts, and the roles that may use it.

The customer writes the key policy. It lets the account's roles use the key as their own policies allow, and it lets
the AWS services use the key that call KMS directly: docs/encryption.md has the statements.
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

# DynamoDB uses the key with the permissions of the role that reads or writes the table.
_READING_TABLE = ("kms:Decrypt", "kms:DescribeKey")
_WRITING_TABLE = ("kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo")
_READING_OBJECTS = ("kms:Decrypt",)
_WRITING_OBJECTS = ("kms:GenerateDataKey",)


class Encryption(Construct):
    """Without a customer's key, everything is encrypted with keys of AWS, which need no permissions of their own."""

    def __init__(
        self, scope: Construct, construct_id: str, *, key_arn: str | None, former_key_arns: Sequence[str] = ()
    ) -> None:
        super().__init__(scope, construct_id)
        self.key_arn = key_arn
        self._former_key_arns = [arn for arn in dict.fromkeys(former_key_arns) if arn != key_arn]
        self.key = kms.Key.from_key_arn(self, "Key", key_arn) if key_arn else None
        self._allowed: set[tuple[str, str, str]] = set()
        """The permissions granted so far: path of the role, service (and whether it is for former keys), action."""
        self._policies: dict[str, iam.Policy] = {}
        """The policy that lets each role use the key, by the path of the role."""
        self._former_policies: dict[str, iam.Policy] = {}
        """The policy that lets each role use the former keys, by the path of the role."""
        self._encrypted: list[CfnResource] = []

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a function that allows others to use the key."""
        return {"BERTH_KMS_KEY": self.key_arn} if self.key_arn else {}

    @property
    def former_environment(self) -> dict[str, str]:
        """The variables of such a function for the former keys."""
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
            # Not set through the construct, which would let every user of the queue use the key for anything.
            resource = queue.node.default_child
            assert isinstance(resource, sqs.CfnQueue)  # noqa: S101 - what the construct is made of
            resource.kms_master_key_id = self.key_arn
            resource.sqs_managed_sse_enabled = False
            self.encrypt_after_policies(queue)
        return queue

    def encrypt_after_policies(self, encrypted: IConstruct) -> None:
        """Encrypt a resource with the key only after all roles that use the resource may use the key.

        A deployment may add the key to a control plane that is in use. This works within one stack: another stack that
        uses a resource of this one is deployed later, and until then its roles may not use the key.
        """
        if self.key_arn is None:
            return
        resource = _resource_of(encrypted)
        self._encrypted.append(resource)
        for policy in self._policies.values():
            _depend_on(policy, resource)

    def allow_table(self, role: iam.Role, *, writing: bool) -> None:
        self._allow(role, "dynamodb", [*_READING_TABLE, *(_WRITING_TABLE if writing else ())])

    def allow_objects(self, role: iam.Role, *, writing: bool) -> None:
        self._allow(role, "s3", [*_READING_OBJECTS, *(_WRITING_OBJECTS if writing else ())])

    def allow_queues(self, role: iam.Role, *accesses: Access) -> None:
        self._allow(role, "sqs", [action for access in accesses for action in KEY_ACTIONS[access]])

    def allow_queues_with_former_keys(self, role: iam.Role, *accesses: Access) -> None:
        """Let a role use queues and messages that are still encrypted with a former key."""
        self._allow_former(role, "sqs", [action for access in accesses for action in KEY_ACTIONS[access]])

    def allow_reading_objects_with_former_keys(self, role: iam.Role) -> None:
        """Let a role read objects that were stored when a former key was in use. S3 does not encrypt them anew."""
        self._allow_former(role, "s3", _READING_OBJECTS)

    def _allow_former(self, role: iam.Role, service: str, actions: Sequence[str]) -> None:
        new = self._not_allowed_yet(role, f"{service} with former keys", actions)
        if new and self._former_key_arns:
            permission = statement(new, self._former_key_arns, _via(service))
            self._former_policy_of(role).add_statements(permission)

    def _former_policy_of(self, role: iam.Role) -> iam.Policy:
        """A new policy. CloudFormation removes the policy that an earlier deployment made for other keys, at the end.

        It has all former keys in each statement, because IAM limits the length of a role's policies.
        """
        path = role.node.path
        if path not in self._former_policies:
            policy = iam.Policy(role, f"Former{_id_of(','.join(self._former_key_arns))}", roles=[role])
            self._former_policies[path] = policy
        return self._former_policies[path]

    def _allow(self, role: iam.Role, service: str, actions: Sequence[str]) -> None:
        """Let a role use the key through the service, but not directly. Repeated calls add nothing."""
        if self.key_arn is None:
            return
        new = self._not_allowed_yet(role, service, actions)
        if new:
            self._policy_of(role, self.key_arn).add_statements(statement(new, [self.key_arn], _via(service)))

    def _not_allowed_yet(self, role: iam.Role, through: str, actions: Sequence[str]) -> list[str]:
        path = role.node.path
        new = [action for action in dict.fromkeys(actions) if (path, through, action) not in self._allowed]
        self._allowed |= {(path, through, action) for action in new}
        return new

    def _policy_of(self, role: iam.Role, key_arn: str) -> iam.Policy:
        """A separate policy for the key. The role's main policy names the table, so it is created after the table.

        Another key makes another policy resource. CloudFormation removes the policy of the former key at the end of
        the deployment, when no resource is encrypted with the former key any more.
        """
        path = role.node.path
        if path not in self._policies:
            policy = iam.Policy(role, _id_of(key_arn), roles=[role])
            self._policies[path] = policy
            for resource in self._encrypted:
                _depend_on(policy, resource)
        return self._policies[path]


def _via(service: str) -> dict[str, dict[str, str]]:
    return {"StringEquals": {"kms:ViaService": f"{service}.{Aws.REGION}.{Aws.URL_SUFFIX}"}}


def _id_of(key_arns: str) -> str:
    return f"Key{hashlib.sha256(key_arns.encode()).hexdigest()[:8]}"


def _depend_on(policy: iam.Policy, encrypted: CfnResource) -> None:
    """Make the encrypted resource depend on the policy, if both are in the same stack."""
    if policy.stack.node.path == encrypted.stack.node.path:
        encrypted.add_dependency(_resource_of(policy))


def _resource_of(construct: IConstruct) -> CfnResource:
    resource = construct.node.default_child
    assert isinstance(resource, CfnResource)  # noqa: S101 - what the construct is made of
    return resource
