"""A log that only one test writes to."""

from __future__ import annotations

import pytest


def use_own_log(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Give functions that are loaded from now on a logger of their own, which writes to this test's standard output.

    Powertools keeps one logger per service for the whole process, with the standard output of whoever made it. So the
    name of the service is the id of the test: tests of other modules may have the same name.
    """
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", request.node.nodeid)
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "INFO")
