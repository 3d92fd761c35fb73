"""The reviews that are kept: one contract for the fake and for DynamoDB."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.adapters.dynamodb.keys import review_key
from orchestrator.adapters.dynamodb.reviews import ReviewTable
from orchestrator.tenants.ports import Reviews
from orchestrator.tenants.reviews import Review
from tests.adapters.conftest import TABLE
from tests.fakes import NEXT_VERSION, NOON, VERSION
from tests.fakes.others import InMemoryReviews

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

REVIEW = Review("a" * 64, VERSION, NEXT_VERSION, "arn:aws:cloudformation:eu-west-1:0:changeSet/berth-1/2", NOON)


@pytest.fixture
def reviews(rows: DynamoDBClient | None) -> Reviews:
    return ReviewTable(rows, TABLE) if rows else InMemoryReviews()


def test_a_review_is_kept_for_its_move_only(reviews: Reviews) -> None:
    assert reviews.review(REVIEW.move) is None
    reviews.keep_review(REVIEW)
    assert reviews.review(REVIEW.move) == REVIEW
    assert reviews.review("b" * 64) is None


def test_a_review_may_be_kept_again(reviews: Reviews) -> None:
    for _ in range(2):
        reviews.keep_review(REVIEW)
    assert reviews.review(REVIEW.move) == REVIEW


def test_the_first_review_of_a_move_is_never_overwritten(dynamodb: DynamoDBClient) -> None:
    reviews = ReviewTable(dynamodb, TABLE)
    reviews.keep_review(REVIEW)
    reviews.keep_review(replace(REVIEW, change_set="another"))
    row = dynamodb.get_item(TableName=TABLE, Key=review_key(REVIEW.move))["Item"]
    assert row == review_key(REVIEW.move) | {
        "FromVersion": {"S": VERSION},
        "Version": {"S": NEXT_VERSION},
        "ChangeSet": {"S": REVIEW.change_set},
        "ReviewedAt": {"S": "2026-11-16T12:00:00.000Z"},
    }


def test_a_review_is_read_once_per_process(dynamodb: DynamoDBClient) -> None:
    reviews = ReviewTable(dynamodb, TABLE)
    reviews.keep_review(REVIEW)
    assert reviews.review(REVIEW.move) == REVIEW
    dynamodb.delete_item(TableName=TABLE, Key=review_key(REVIEW.move))
    assert reviews.review(REVIEW.move) == REVIEW
