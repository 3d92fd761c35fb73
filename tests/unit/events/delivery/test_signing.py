"""Deliveries are signed so that the library of Standard Webhooks accepts them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from orchestrator.events.delivery.signing import new_signing_secret, signature_headers

BODY = '{"total": 120, "name": "Ä"}'.encode()


def headers(*secrets: str, body: bytes = BODY, age: timedelta = timedelta()) -> dict[str, str]:
    # The library compares with the clock of the machine.
    return dict(signature_headers("msg_1", body, secrets, datetime.now(UTC) - age))


def test_the_library_accepts_a_delivery() -> None:
    secret = new_signing_secret()
    assert Webhook(secret).verify(BODY, headers(secret)) == {"total": 120, "name": "Ä"}


def test_the_published_example_has_the_published_signature() -> None:
    """From the tests of the reference implementation."""
    signed = signature_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        b'{"test": 2432232314}',
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        datetime.fromtimestamp(1_614_265_330, UTC),
    )
    assert signed["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("which", [0, 1])
def test_during_a_rotation_either_secret_is_accepted(which: int) -> None:
    secrets = [new_signing_secret(), new_signing_secret()]
    Webhook(secrets[which]).verify(BODY, headers(*secrets))


@pytest.mark.parametrize(
    ("body", "secret_is_right", "age"),
    [(b"{}", True, timedelta()), (BODY, False, timedelta()), (BODY, True, timedelta(minutes=6))],
    ids=["another body", "another secret", "too old"],
)
def test_the_library_refuses_what_was_changed(body: bytes, secret_is_right: bool, age: timedelta) -> None:
    secret = new_signing_secret()
    checked = secret if secret_is_right else new_signing_secret()
    with pytest.raises(WebhookVerificationError):
        Webhook(checked).verify(body, headers(secret, age=age))


def test_every_secret_is_another() -> None:
    assert len({new_signing_secret() for _ in range(100)}) == 100


def test_bytes_that_are_no_text_are_signed() -> None:
    assert headers(new_signing_secret(), body=b"\xff\x00")["webhook-signature"].startswith("v1,")
