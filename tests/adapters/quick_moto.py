"""moto without work that it repeats for every request, and whose result is always the same or nobody reads.

All of it together is nearly half of the time of the tests on moto.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from botocore import useragent
from botocore.auth import SigV4Auth
from moto import backend_index
from moto.core import responses
from moto.core.serialize import ResponseSerializer
from moto.kms import models as kms

if TYPE_CHECKING:
    import pytest
    from botocore.awsrequest import AWSRequest
    from botocore.model import Shape

TYPES_OF_ATTRIBUTES = {"S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL"}
PLAIN_TYPES = {"S", "N", "NULL", "BOOL"}
"""Types of attributes whose values are the same in moto and in a response."""
SERVICES = ("dynamodb", "sqs", "kms", "cloudformation")
"""The services that most requests are for."""

_private_key = cache(kms.generate_private_key)
_method_names = cache(responses.method_names_from_class)
_sanitized = cache(useragent.sanitize_user_agent_string_component)
_search = ResponseSerializer.get_value
_serialize = ResponseSerializer._serialize
_sign = SigV4Auth.add_auth
_url_patterns = sorted(backend_index.backend_url_patterns, key=lambda each: each[0] not in SERVICES)
"""The address of a request is compared with one after the other."""


def quicken(patch: pytest.MonkeyPatch) -> None:
    # An RSA key for every KMS key takes a tenth of a second, and no test uses it.
    patch.setattr(kms, "generate_private_key", _private_key)
    patch.setattr(responses, "method_names_from_class", _method_names)
    patch.setattr(useragent, "sanitize_user_agent_string_component", _sanitized)
    patch.setattr(useragent.UserAgentString, "to_string", lambda _: "Boto3")
    patch.setattr(ResponseSerializer, "get_value", _value)
    patch.setattr(ResponseSerializer, "_serialize", _serialized)
    patch.setattr(SigV4Auth, "add_auth", _signed)
    patch.setattr(backend_index, "backend_url_patterns", _url_patterns)
    patch.setattr(responses, "gen_amzn_requestid_long", _request_id)


def _value(serializer: ResponseSerializer, response: Any, key: str, shape: Shape) -> Any:
    """A part of a response. An attribute of a row has one type, and moto would look for each of the nine others under
    seven names."""
    if type(response) is dict and response.keys() <= TYPES_OF_ATTRIBUTES:
        return response.get(key)
    return _search(serializer, response, key, shape)


def _serialized(serializer: ResponseSerializer, serialized: Any, value: Any, shape: Shape, key: str) -> None:
    """Put a part of a response into the response."""
    if shape.name == "AttributeValue" and type(value) is dict and value.keys() <= PLAIN_TYPES:
        serializer._default_serialize(serialized, value, shape, key)
    else:
        _serialize(serializer, serialized, value, shape, key)


def _signed(signer: SigV4Auth, request: AWSRequest) -> None:
    """Sign the request, or, if moto gets it, only name the key and the region: moto checks no signatures."""
    if signer._service_name not in SERVICES or ".amazonaws.com/" not in request.url:
        _sign(signer, request)
        return
    request.context["timestamp"] = "20261117T120000Z"
    if signer.credentials.token:
        request.headers["X-Amz-Security-Token"] = signer.credentials.token
    request.headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, Signature=none"


def _request_id(headers: Any = None) -> str:
    """An id without 52 random characters."""
    if headers is not None:
        headers["x-amzn-requestid"] = "A" * 52
    return "A" * 52
