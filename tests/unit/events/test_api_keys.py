"""API keys."""

from __future__ import annotations

import pytest

from orchestrator.events.api_keys import digest_of, is_key, new_key, visible_prefix


def test_a_key_names_its_environment_and_is_43_random_characters() -> None:
    key = new_key("live")
    assert key.startswith("bk_live_")
    assert len(key) == len("bk_live_") + 43
    assert is_key(key)


def test_two_keys_differ() -> None:
    assert new_key("live") != new_key("live")


def test_the_visible_prefix_shows_six_random_characters() -> None:
    key = new_key("test", lambda _size: "_bcdef" + "g" * 37)
    assert visible_prefix(key) == "bk_test__bcdef"


def test_a_digest_is_the_sha_256_of_the_whole_key() -> None:
    assert digest_of("bk_live_x") == "50fe7c6d01f4a522a741a7f2f0ee107a04c5084415176c0e5f42a7f23b705827"


@pytest.mark.parametrize(
    "text", ["", "bk_live_", "bk_live_" + "x" * 42, "bk_live_" + "x" * 44, "bk_live_" + "é" * 43, "sk_live_" + "x" * 43]
)
def test_a_text_of_another_form_is_no_key(text: str) -> None:
    assert not is_key(text)


def test_a_key_with_a_trailing_newline_is_no_key() -> None:
    assert not is_key(new_key("live") + "\n")
