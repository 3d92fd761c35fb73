"""moto without work that it repeats for every request, and whose result is always the same.

All of it together is a quarter of the time of the tests on moto.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from botocore import useragent
from moto.core import responses
from moto.core.serialize import ResponseSerializer
from moto.kms import models as kms

if TYPE_CHECKING:
    import pytest
    from botocore.model import Shape

TYPES_OF_ATTRIBUTES = {"S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL"}

_private_key = cache(kms.generate_private_key)
_method_names = cache(responses.method_names_from_class)
_sanitized = cache(useragent.sanitize_user_agent_string_component)
_search = ResponseSerializer.get_value


def quicken(patch: pytest.MonkeyPatch) -> None:
    # An RSA key for every KMS key takes a tenth of a second, and no test uses it.
    patch.setattr(kms, "generate_private_key", _private_key)
    patch.setattr(responses, "method_names_from_class", _method_names)
    patch.setattr(useragent, "sanitize_user_agent_string_component", _sanitized)
    patch.setattr(ResponseSerializer, "get_value", _value)


def _value(serializer: ResponseSerializer, response: Any, key: str, shape: Shape) -> Any:
    """A part of a response. An attribute of a row has one type, and moto would look for each of the nine others under
    seven names."""
    if type(response) is dict and response.keys() <= TYPES_OF_ATTRIBUTES:
        return response.get(key)
    return _search(serializer, response, key, shape)
