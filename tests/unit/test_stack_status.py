"""Every CloudFormation stack status is sorted by name. The SDK says which there are."""

from __future__ import annotations

import pytest
from botocore.loaders import Loader

from orchestrator.tenants.stack_status import StackCondition, condition

SORTED = {
    StackCondition.WORKING: {
        "CREATE_IN_PROGRESS",
        "ROLLBACK_IN_PROGRESS",
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "UPDATE_ROLLBACK_IN_PROGRESS",
        "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
        "DELETE_IN_PROGRESS",
        "IMPORT_IN_PROGRESS",
        "IMPORT_ROLLBACK_IN_PROGRESS",
    },
    StackCondition.DONE: {"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"},
    StackCondition.DONE_AT_OLD_VERSION: {"UPDATE_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"},
    StackCondition.GONE: {"DELETE_COMPLETE"},
    StackCondition.CREATION_FAILED: {"CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "REVIEW_IN_PROGRESS"},
    StackCondition.NEEDS_ROLLBACK: {"UPDATE_FAILED"},
    StackCondition.NEEDS_ROLLBACK_CONTINUED: {"UPDATE_ROLLBACK_FAILED"},
    StackCondition.BROKEN: {"DELETE_FAILED", "IMPORT_ROLLBACK_FAILED"},
}
EXPECTED = [(status, meant) for meant, statuses in SORTED.items() for status in sorted(statuses)]


def known_to_the_sdk() -> set[str]:
    model = Loader().load_service_model("cloudformation", "service-2")
    return set(model["shapes"]["StackStatus"]["enum"])


def test_every_status_of_the_sdk_has_a_condition() -> None:
    assert {status for status, _ in EXPECTED} == known_to_the_sdk()
    assert len(EXPECTED) == 23


@pytest.mark.parametrize(("status", "meant"), EXPECTED)
def test_a_status_means(status: str, meant: StackCondition) -> None:
    assert condition(status) is meant


def test_every_condition_is_the_meaning_of_some_status() -> None:
    assert set(SORTED) == set(StackCondition)


def test_an_unknown_status_that_says_it_is_in_progress_is_waited_for() -> None:
    assert condition("REFACTOR_IN_PROGRESS") is StackCondition.WORKING


@pytest.mark.parametrize("status", ["", "REFACTOR_COMPLETE", "REFACTOR_FAILED", "create_complete"])
def test_any_other_unknown_status_is_broken(status: str) -> None:
    assert condition(status) is StackCondition.BROKEN
