"""The words for statuses."""

from __future__ import annotations

import pytest

from orchestrator.events.statuses import EventStatus, status_of_word


@pytest.mark.parametrize("status", EventStatus)
def test_every_status_is_its_own_word(status: EventStatus) -> None:
    assert status_of_word(status.value) is status


@pytest.mark.parametrize("word", ["undelivered", "pending", "processing"])
def test_the_words_of_other_systems_mean_received(word: str) -> None:
    assert status_of_word(word) is EventStatus.RECEIVED


@pytest.mark.parametrize("word", ["", "RECEIVED", "deleted"])
def test_any_other_word_means_no_status(word: str) -> None:
    assert status_of_word(word) is None
