"""The emulator reports the quota of AWS, not the limit that protects this machine."""

from __future__ import annotations

import json

import pytest
from ministack.services import lambda_svc  # type: ignore[import-untyped]

from orchestrator.local.gaps import QUOTA, report_the_quota_of_aws


def test_the_emulator_reports_the_quota_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lambda_svc, "_ACCOUNT_CONCURRENCY_CAP", 40)
    original = lambda_svc._get_account_settings
    monkeypatch.setattr(lambda_svc, "_get_account_settings", original)
    assert json.loads(original()[2])["AccountLimit"]["ConcurrentExecutions"] == 40
    report_the_quota_of_aws()
    status, _, body = lambda_svc._get_account_settings()
    assert (status, json.loads(body)["AccountLimit"]["ConcurrentExecutions"]) == (200, QUOTA)
