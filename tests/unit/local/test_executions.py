"""The emulator lists executions as AWS does: the newest first. `GET /operations` relies on it."""

from __future__ import annotations

import json

import pytest
from ministack.services import stepfunctions  # type: ignore[import-untyped]

MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:Berth-Create"


def test_the_newest_executions_are_listed_if_there_are_more_than_were_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executions = {
        f"{MACHINE}:{number}": {
            "executionArn": f"{MACHINE}:{number}",
            "stateMachineArn": MACHINE,
            "name": str(number),
            "status": "RUNNING" if number == 59 else "SUCCEEDED",
            "startDate": f"2026-11-16T12:00:{number:02}.000Z",
            "stopDate": None if number == 59 else f"2026-11-16T12:00:{number:02}.500Z",
        }
        for number in range(60)
    }
    monkeypatch.setattr(stepfunctions, "_executions", executions)
    _, _, body = stepfunctions._list_executions({"stateMachineArn": MACHINE, "maxResults": 50})
    assert [each["name"] for each in json.loads(body)["executions"]] == [str(number) for number in range(59, 9, -1)]
