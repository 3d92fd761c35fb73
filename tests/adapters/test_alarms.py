"""Alarms in CloudWatch: which exist, which are on, and which were on since a moment."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from orchestrator.adapters.cloudwatch import CloudWatchAlarms
from orchestrator.common.errors import Throttled
from tests.adapters.conftest import client
from tests.fakes import NOON

BOTH_TYPES = ["MetricAlarm", "CompositeAlarm"]


@pytest.fixture
def alarms() -> CloudWatchAlarms:
    return CloudWatchAlarms(client("cloudwatch"))


def an_alarm(name: str, state: str = "OK", reason: str = "It is well.") -> dict[str, Any]:
    return {"AlarmName": name, "StateValue": state, "StateReason": reason}


def described(cloudwatch: Stubber, *names: str, token: str | None = None, **answer: Any) -> None:
    sent: dict[str, Any] = {"AlarmNames": list(names), "AlarmTypes": BOTH_TYPES}
    if token:
        sent["NextToken"] = token
    cloudwatch.add_response("describe_alarms", answer, sent)


def remembered(
    cloudwatch: Stubber, name: str, *states: str, token: str | None = None, next_token: str | None = None
) -> None:
    """The states that it has changed to, as CloudWatch writes them down."""
    sent: dict[str, Any] = {
        "AlarmName": name,
        "AlarmTypes": BOTH_TYPES,
        "HistoryItemType": "StateUpdate",
        "StartDate": NOON,
    }
    if token:
        sent["NextToken"] = token
    items = [
        {
            "AlarmName": name,
            "HistoryItemType": "StateUpdate",
            "HistorySummary": f"Alarm updated to {state}",
            "HistoryData": json.dumps(
                {
                    "version": "1.0",
                    "oldState": {"stateValue": "OK", "stateReason": "It was well."},
                    "newState": {"stateValue": state, "stateReason": f"{state} because of the errors."},
                }
            ),
        }
        for state in states
    ]
    answer = {"AlarmHistoryItems": items, **({"NextToken": next_token} if next_token else {})}
    cloudwatch.add_response("describe_alarm_history", answer, sent)


def test_an_alarm_of_either_type_is_known(alarms: CloudWatchAlarms, cloudwatch: Stubber) -> None:
    described(cloudwatch, "a", "b", "c", MetricAlarms=[an_alarm("a")], CompositeAlarms=[an_alarm("c")])
    assert alarms.unknown(["c", "b", "a", "b"]) == ["b"]


def test_without_names_cloudwatch_is_not_called(alarms: CloudWatchAlarms, cloudwatch: Stubber) -> None:
    assert alarms.unknown([]) == []
    cloudwatch.assert_no_pending_responses()


def test_names_are_sent_in_batches_and_all_pages_are_read(alarms: CloudWatchAlarms, cloudwatch: Stubber) -> None:
    names = [f"alarm-{number:03}" for number in range(101)]
    described(cloudwatch, *names[:100], MetricAlarms=[an_alarm(name) for name in names[:50]], NextToken="more")
    described(cloudwatch, *names[:100], token="more", MetricAlarms=[an_alarm(name) for name in names[50:99]])
    described(cloudwatch, names[100], MetricAlarms=[an_alarm(names[100])])
    assert alarms.unknown(names) == [names[99]]


@pytest.mark.parametrize("state", ["OK", "INSUFFICIENT_DATA"])
def test_an_alarm_that_is_not_on_has_not_gone_off(alarms: CloudWatchAlarms, cloudwatch: Stubber, state: str) -> None:
    described(cloudwatch, "a", MetricAlarms=[an_alarm("a", state)])
    remembered(cloudwatch, "a")
    assert alarms.went_off("a", since=NOON) is None


@pytest.mark.parametrize("kind", ["MetricAlarms", "CompositeAlarms"])
def test_an_alarm_that_is_on_says_why(alarms: CloudWatchAlarms, cloudwatch: Stubber, kind: str) -> None:
    answer: dict[str, Any] = {kind: [an_alarm("a", "ALARM", "Too old a message.")]}
    described(cloudwatch, "a", **answer)
    assert alarms.went_off("a", since=NOON) == "Too old a message."


def test_an_alarm_that_is_on_may_have_no_reason(alarms: CloudWatchAlarms, cloudwatch: Stubber) -> None:
    described(cloudwatch, "a", MetricAlarms=[an_alarm("a", "ALARM", "")])
    assert alarms.went_off("a", since=NOON) == "No reason was given."


@pytest.mark.parametrize("kind", ["MetricAlarms", "CompositeAlarms"])
def test_an_alarm_that_was_on_and_recovered_has_gone_off(
    alarms: CloudWatchAlarms, cloudwatch: Stubber, kind: str
) -> None:
    answer: dict[str, Any] = {kind: [an_alarm("a")]}
    described(cloudwatch, "a", **answer)
    remembered(cloudwatch, "a", "OK", "ALARM", "INSUFFICIENT_DATA")
    assert alarms.went_off("a", since=NOON) == "ALARM because of the errors."


def test_an_alarm_that_only_recovered_since_has_not_gone_off(alarms: CloudWatchAlarms, cloudwatch: Stubber) -> None:
    described(cloudwatch, "a", MetricAlarms=[an_alarm("a")])
    remembered(cloudwatch, "a", "OK", "INSUFFICIENT_DATA")
    assert alarms.went_off("a", since=NOON) is None


def test_an_alarms_history_has_pages(alarms: CloudWatchAlarms, cloudwatch: Stubber) -> None:
    described(cloudwatch, "a", MetricAlarms=[an_alarm("a")])
    remembered(cloudwatch, "a", "OK", next_token="more")
    remembered(cloudwatch, "a", "ALARM", token="more")
    assert alarms.went_off("a", since=NOON) == "ALARM because of the errors."


def test_an_alarms_history_may_be_throttled_and_refused(alarms: CloudWatchAlarms, cloudwatch: Stubber) -> None:
    for code, error in (("Throttling", Throttled), ("AccessDenied", ClientError)):
        described(cloudwatch, "a", MetricAlarms=[an_alarm("a")])
        cloudwatch.add_client_error("describe_alarm_history", code, "no")
        with pytest.raises(error):
            alarms.went_off("a", since=NOON)


def test_a_deleted_alarm_counts_as_gone_off(alarms: CloudWatchAlarms, cloudwatch: Stubber) -> None:
    described(cloudwatch, "a", MetricAlarms=[])
    assert alarms.went_off("a", since=NOON) == "The alarm no longer exists."


def test_cloudwatch_may_throttle_and_refuse(alarms: CloudWatchAlarms, cloudwatch: Stubber) -> None:
    for code, error in (("Throttling", Throttled), ("AccessDenied", ClientError)):
        cloudwatch.add_client_error("describe_alarms", code, "no")
        with pytest.raises(error):
            alarms.went_off("a", since=NOON)
        cloudwatch.add_client_error("describe_alarms", code, "no")
        with pytest.raises(error):
            alarms.unknown(["a"])


@pytest.mark.usefixtures("aws")
def test_a_real_alarm_is_known_and_goes_off(alarms: CloudWatchAlarms) -> None:
    client("cloudwatch").put_metric_alarm(
        AlarmName="a",
        MetricName="m",
        Namespace="n",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
        Statistic="Sum",
    )
    assert alarms.unknown(["a", "b"]) == ["b"]
    client("cloudwatch").set_alarm_state(AlarmName="a", StateValue="ALARM", StateReason="Too many.")
    assert alarms.went_off("a", since=NOON) == "Too many."
