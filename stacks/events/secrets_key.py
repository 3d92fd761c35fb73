"""The KMS key for the secrets of tenants' sources: the customer's key, if there is one, or a key of this stack.

Functions encrypt and decrypt directly, always with an encryption context that names the tenant and its epoch. So the
permissions do not reach anything else that is encrypted with the customer's key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.common.capability import Capability, Output
from stacks.common.permissions import statement
from stacks.settings import Settings

_FOR_A_TENANT = {
    "Null": {"kms:EncryptionContext:tenant": "false", "kms:EncryptionContext:epoch": "false"},
}


class SecretsKey(Capability):
    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        if settings.kms_key_arn is None:
            own = kms.Key(
                self,
                "Key",
                description="Encrypts the secrets of the sources of Berth's tenants.",
                enable_key_rotation=True,
                # Without the key, no webhook of any tenant can be verified any more.
                removal_policy=RemovalPolicy.RETAIN,
            )
            self._arn = own.key_arn
        else:
            self._arn = settings.kms_key_arn
        self._former = [arn for arn in dict.fromkeys(settings.former_kms_key_arns) if arn != settings.kms_key_arn]

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("SecretsKeyArn", self._arn),)

    @property
    def environment(self) -> Mapping[str, str]:
        return {"BERTH_SECRETS_KEY": self._arn}

    def allow_encrypting(self, role: iam.Role) -> None:
        role.add_to_policy(statement(["kms:Encrypt"], [self._arn], _FOR_A_TENANT))

    def allow_decrypting(self, role: iam.Role) -> None:
        """Let a role decrypt, also with former keys: a secret stays encrypted with the key that it was made with."""
        role.add_to_policy(statement(["kms:Decrypt"], [self._arn, *self._former], _FOR_A_TENANT))
