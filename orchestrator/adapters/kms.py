"""Signing secrets, encrypted by KMS itself: they are below its limit of 4,096 bytes, so no data keys are needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.common.errors import InvalidRequest, UnreadableRows
from orchestrator.events.records import TenantEpoch

MAX_PLAINTEXT_BYTES = 4_096
_MAX_REMEMBERED = 1_000

_NOT_OURS = "InvalidCiphertextException"

_Entry = tuple[bytes, tuple[tuple[str, str], ...]]
"""A ciphertext with its encryption context: what was decrypted for one tenant is never found for another."""


class KmsSecrets:
    """Implements :class:`orchestrator.events.ports.Secrets`.

    A warm function remembers what it has decrypted, so that a webhook costs no call of KMS. The client is made when it
    is first needed. Several threads may decrypt at once.
    """

    def __init__(self, client: Callable[[], Any], key: str) -> None:
        self._make_client = client
        self._key = key
        self._client: Any = None
        self._remembered: OrderedDict[_Entry, bytes] = OrderedDict()
        self._lock = Lock()

    def encrypt(self, plaintext: bytes, life: TenantEpoch, context: Mapping[str, str]) -> bytes:
        if len(plaintext) > MAX_PLAINTEXT_BYTES:
            raise InvalidRequest(
                f"Tenant {life.tenant}: the secret has {len(plaintext)} bytes; at most {MAX_PLAINTEXT_BYTES} are "
                "allowed."
            )
        with throttling():
            encrypted = self._kms.encrypt(
                KeyId=self._key, Plaintext=plaintext, EncryptionContext=_whole_context(life, context)
            )
        ciphertext: bytes = encrypted["CiphertextBlob"]
        return ciphertext

    def decrypt(self, ciphertext: bytes, life: TenantEpoch, context: Mapping[str, str]) -> bytes:
        whole = _whole_context(life, context)
        entry = ciphertext, tuple(sorted(whole.items()))
        with self._lock:
            if entry in self._remembered:
                self._remembered.move_to_end(entry)
                return self._remembered[entry]
        try:
            with throttling():
                # The ciphertext names its key, which may be a former one. The function's policy names the allowed keys.
                decrypted = self._kms.decrypt(CiphertextBlob=ciphertext, EncryptionContext=whole)
        except ClientError as error:
            if error_code(error) != _NOT_OURS:
                raise
            named = ", ".join(f"{name} {value}" for name, value in sorted(context.items()))
            raise UnreadableRows(
                f"Tenant {life.tenant}: the secret of {named} cannot be decrypted, because it was not encrypted for "
                "it. Create it again with its secret."
            ) from None
        plaintext: bytes = decrypted["Plaintext"]
        with self._lock:
            self._remembered[entry] = plaintext
            if len(self._remembered) > _MAX_REMEMBERED:
                self._remembered.popitem(last=False)
        return plaintext

    @property
    def _kms(self) -> Any:
        if self._client is None:
            self._client = self._make_client()
        return self._client


def _whole_context(life: TenantEpoch, context: Mapping[str, str]) -> dict[str, str]:
    return {**context, "tenant": life.tenant.value, "epoch": life.epoch}
