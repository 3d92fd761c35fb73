"""The signature of a delivery, by Standard Webhooks: receivers check it with any of its libraries.

The signed bytes are ``{webhook-id}.{webhook-timestamp}.{body}``. While a secret is being rotated, a delivery carries
two signatures, and a receiver accepts either.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"
ROTATION_OVERLAP = timedelta(hours=24)
"""For how long deliveries carry the signature of the former secret, too."""
_PREFIX = "whsec_"
_SECRET_BYTES = 32


def new_signing_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def secret_context(connection_id: str) -> Mapping[str, str]:
    """The encryption context of a connection's secrets, besides its tenant."""
    return {"connection": connection_id}


def signature_headers(delivery_id: str, body: bytes, signing_secrets: Sequence[str], at: datetime) -> Mapping[str, str]:
    """The headers of one try. The id is the same over all tries, so that a receiver can recognise a repetition."""
    timestamp = str(int(at.timestamp()))
    signed = f"{delivery_id}.{timestamp}.".encode() + body
    signatures = [_signature(secret, signed) for secret in signing_secrets]
    return {ID_HEADER: delivery_id, TIMESTAMP_HEADER: timestamp, SIGNATURE_HEADER: " ".join(signatures)}


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()
