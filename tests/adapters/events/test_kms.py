"""Secrets under KMS: each can be decrypted for the source that it was encrypted for, and for no other."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.adapters import kms
from orchestrator.adapters.kms import KmsSecrets
from orchestrator.common.errors import InvalidRequest, UnreadableRows
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.records import TenantEpoch
from tests.adapters.conftest import client
from tests.fakes.events import ACME_LIFE

SOURCE = {"source": "src_1"}


class Counting:
    """KMS, which counts how often it is asked to decrypt."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.decrypted = 0
        self.asked: dict[str, Any] = {}

    def encrypt(self, **given: Any) -> Any:
        return self.real.encrypt(**given)

    def decrypt(self, **given: Any) -> Any:
        self.decrypted += 1
        self.asked = given
        return self.real.decrypt(**given)


@pytest.fixture
def service(aws: None) -> Counting:  # noqa: ARG001 - the account it is in
    return Counting(client("kms"))


@pytest.fixture
def secrets(service: Counting) -> KmsSecrets:
    return KmsSecrets(lambda: service, service.real.create_key()["KeyMetadata"]["Arn"])


def test_a_secret_comes_back_and_is_not_in_the_ciphertext(secrets: KmsSecrets) -> None:
    ciphertext = secrets.encrypt(b"whsec_1", ACME_LIFE, SOURCE)
    assert b"whsec_1" not in ciphertext
    assert secrets.decrypt(ciphertext, ACME_LIFE, SOURCE) == b"whsec_1"


@pytest.mark.parametrize(
    ("life", "context"),
    [
        (ACME_LIFE, {"source": "src_2"}),
        (ACME_LIFE, {"connection": "src_1"}),
        (TenantEpoch(ACME_LIFE.tenant, "another"), SOURCE),
        (TenantEpoch(TenantId.parse("globex"), ACME_LIFE.epoch), SOURCE),
    ],
)
def test_a_secret_of_another_source_epoch_or_tenant_cannot_be_decrypted(
    secrets: KmsSecrets, life: TenantEpoch, context: dict[str, str]
) -> None:
    ciphertext = secrets.encrypt(b"whsec_1", ACME_LIFE, SOURCE)
    # It is remembered for its own source, and is not found for another one either.
    secrets.decrypt(ciphertext, ACME_LIFE, SOURCE)
    with pytest.raises(UnreadableRows, match=f"Tenant {life.tenant}.*Create it again"):
        secrets.decrypt(ciphertext, life, context)


def test_a_secret_of_a_former_key_is_still_decrypted(secrets: KmsSecrets, service: Counting) -> None:
    ciphertext = secrets.encrypt(b"whsec_1", ACME_LIFE, SOURCE)
    another = KmsSecrets(lambda: service, service.real.create_key()["KeyMetadata"]["Arn"])
    assert another.decrypt(ciphertext, ACME_LIFE, SOURCE) == b"whsec_1"
    assert "KeyId" not in service.asked, "KMS refuses a ciphertext of another key than the named one"


def test_a_context_cannot_name_another_tenant(secrets: KmsSecrets) -> None:
    ciphertext = secrets.encrypt(b"whsec_1", ACME_LIFE, SOURCE)
    assert secrets.decrypt(ciphertext, ACME_LIFE, SOURCE | {"tenant": "globex"}) == b"whsec_1"


def test_a_warm_function_decrypts_a_secret_once(secrets: KmsSecrets, service: Counting) -> None:
    ciphertext = secrets.encrypt(b"whsec_1", ACME_LIFE, SOURCE)
    for _ in range(3):
        secrets.decrypt(ciphertext, ACME_LIFE, SOURCE)
    assert service.decrypted == 1


def test_only_so_many_secrets_are_remembered(
    secrets: KmsSecrets, service: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kms, "_MAX_REMEMBERED", 2)
    first, second, third = (secrets.encrypt(text, ACME_LIFE, SOURCE) for text in (b"1", b"2", b"3"))
    # The first one is used again before the third, so that the second is the one to go.
    for ciphertext in (first, second, first, third, first):
        secrets.decrypt(ciphertext, ACME_LIFE, SOURCE)
    assert service.decrypted == 3
    secrets.decrypt(second, ACME_LIFE, SOURCE)
    assert service.decrypted == 4


def test_a_secret_that_is_too_long_for_kms_is_refused(secrets: KmsSecrets) -> None:
    with pytest.raises(InvalidRequest, match=r"acme.*4097 bytes.*4096"):
        secrets.encrypt(b"x" * 4_097, ACME_LIFE, SOURCE)


def test_a_text_that_is_no_ciphertext_is_told_apart_from_a_fault(secrets: KmsSecrets) -> None:
    with pytest.raises(UnreadableRows):
        secrets.decrypt(b"nonsense", ACME_LIFE, SOURCE)
