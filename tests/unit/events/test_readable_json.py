"""Which JSON can be shown as it is."""

from __future__ import annotations

import pytest

from orchestrator.events.readable_json import MAX_DIGITS, MAX_LEVELS, is_readable


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[" * MAX_LEVELS + b"]" * MAX_LEVELS,
        b'[{"a":' * (MAX_LEVELS // 2) + b"1" + b"}]" * (MAX_LEVELS // 2),
        # Brackets and digits in texts do not count.
        b'{"a":"' + b"[" * 5000 + b'"}',
        b'{"a":"\\"' + b"[" * 5000 + b'\\\\"}',
        b'{"a":"' + b"1" * 5000 + b'"}',
        b"[" + b",".join([b"[]"] * 5000) + b"]",
        b"1" * MAX_DIGITS,
        b"[" + b",".join([b"1" * MAX_DIGITS] * 100) + b"]",
    ],
)
def test_json_within_the_limits_is_readable(body: bytes) -> None:
    assert is_readable(body)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * (MAX_LEVELS + 1) + b"]" * (MAX_LEVELS + 1),
        b'{"a":' * (MAX_LEVELS + 1) + b"1" + b"}" * (MAX_LEVELS + 1),
        b'{"text":"","a":' + b"[" * MAX_LEVELS + b"]" * MAX_LEVELS + b"}",
        b'{"a":-' + b"1" * (MAX_DIGITS + 1) + b"}",
        b"[1e" + b"1" * (MAX_DIGITS + 1) + b"]",
        b'["' + b"1" * 5000 + b'",' + b"1" * 5000 + b"]",
    ],
)
def test_json_that_is_nested_too_deeply_or_has_too_long_numbers_is_not(body: bytes) -> None:
    assert not is_readable(body)
