"""How the content of an event is stored."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.events.content import MAX_BODY_BYTES, pack, unpack
from orchestrator.events.records import Content

HEADERS = st.dictionaries(st.text(max_size=20), st.text(max_size=50), max_size=5)


@given(st.binary(max_size=5000), HEADERS, st.integers(1, 200))
def test_content_comes_back_byte_for_byte(body: bytes, headers: dict[str, str], times: int) -> None:
    content = Content((body * times)[:MAX_BODY_BYTES], headers)
    assert unpack(pack(content)) == content


def test_a_small_body_is_stored_as_it_is() -> None:
    packed = pack(Content(b'{"n": 1}'))
    assert (packed.data, packed.packing) == (b'{"n": 1}', "")


def test_a_body_above_1_kb_is_compressed() -> None:
    packed = pack(Content(b"a" * 1025))
    assert packed.packing == "z"
    assert len(packed.data) < 100


def test_a_body_that_does_not_compress_is_stored_as_it_is() -> None:
    body = os.urandom(2000)
    packed = pack(Content(body))
    assert (packed.data, packed.packing) == (body, "")


def test_headers_are_compressed_with_the_body() -> None:
    packed = pack(Content(b"a" * 2000, {"x-github-event": "push"}))
    assert packed.packing == "hz"
    assert b"x-github-event" not in packed.data


def test_content_above_4_kb_after_compression_is_not_inline() -> None:
    assert pack(Content(os.urandom(4096))).is_inline
    assert not pack(Content(os.urandom(4097))).is_inline
    assert pack(Content(b"a" * MAX_BODY_BYTES)).is_inline


def test_headers_with_an_empty_body_come_back() -> None:
    content = Content(b"", {"content-type": "text/plain"})
    assert unpack(pack(content)) == content
