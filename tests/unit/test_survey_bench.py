"""The benchmark of surveys: a survey that several functions make asks for nothing twice, except one page each."""

from __future__ import annotations

from functools import cache

from bench.survey import MAX_GROWTH, Surveyed, SurveyedFleet

SMALL, LARGE = 100, 3_000
CHECKS = 1_000
QUEUES_PER_PAGE = 200


@cache
def surveyed(size: int, checks: int | None) -> Surveyed:
    return SurveyedFleet(size).survey(checks)


def test_a_survey_that_is_continued_checks_every_tenant_and_every_stack_once() -> None:
    continued, whole = surveyed(LARGE, CHECKS), surveyed(LARGE, None)
    assert (continued.functions, whole.functions) == (4, 1)
    assert (continued.tenants, continued.stacks, continued.findings) == (LARGE, LARGE, 0)
    assert continued.cloudformation == whole.cloudformation == LARGE / 100
    assert whole.sqs == LARGE
    assert continued.sqs <= whole.sqs + (continued.functions - 1) * QUEUES_PER_PAGE


def test_the_requests_of_a_survey_grow_no_faster_than_the_fleet() -> None:
    small, large = (surveyed(size, None).per_tenant() for size in (SMALL, LARGE))
    grown = {what: large[what] / small[what] for what in small if what.startswith(("requests", "units"))}
    assert len(grown) == 4
    assert all(each <= MAX_GROWTH for each in grown.values()), grown
