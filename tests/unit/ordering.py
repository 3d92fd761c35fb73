"""Operators' requests about tenants in tests: the callers, and the results."""

from __future__ import annotations

from datetime import timedelta

from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.order_results import Accepted, Changed, OrderResult, Unchanged
from orchestrator.tenants.records import Request

ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"
BOB = "arn:aws:sts::000000000000:assumed-role/operator/bob"
BY_ADA, BY_BOB = Request(by=ADA), Request(by=BOB)
UNPUBLISHED_VERSION = "9.9.9"
A_SECOND = timedelta(seconds=1)
LABELS = {"team": "billing"}


def accepted(ordered: OrderResult) -> Accepted:
    assert isinstance(ordered, Accepted)
    return ordered


def refused(ordered: OrderResult, kind: Refusal) -> Refused:
    assert isinstance(ordered, Refused)
    assert ordered.kind is kind
    assert "acme" in ordered.reason
    return ordered


def already_so(ordered: OrderResult) -> str:
    assert isinstance(ordered, Unchanged)
    assert "acme" in ordered.reason
    return ordered.reason


def changed(ordered: OrderResult) -> str:
    assert isinstance(ordered, Changed)
    assert ordered.before != ordered.after
    return ordered.reason
