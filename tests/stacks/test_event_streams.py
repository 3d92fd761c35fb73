"""The streams of the event plane's tables, Berth's own events, and the end of a tenant."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta

import pytest

from orchestrator.events.authorising import REMEMBERED_SECONDS
from orchestrator.events.purging import HEARTBEAT_IS_LOST_AFTER
from orchestrator.tenants.names import Names
from stacks.settings import Settings
from stacks.tenants.machines import definition
from tests.stacks.allowed_wildcards import WITHOUT_RESOURCES
from tests.stacks.event_plane import Json, properties, the_only, variables_of
from tests.stacks.policies import grants, spelled

# The streams


@pytest.fixture
def mappings(event_plane: Json, event_function_ids: dict[str, str]) -> dict[str, Json]:
    """The mapping of each function that Lambda calls with records of a stream or messages of a queue."""
    names = {logical_id: name for name, logical_id in event_function_ids.items()}
    found = properties(event_plane, "AWS::Lambda::EventSourceMapping")
    return {names[each["FunctionName"]["Ref"]]: each for each in found}


def test_usage_is_counted_from_inserted_events_only(event_plane: Json, mappings: dict[str, Json]) -> None:
    mapping = mappings["count_usage"]
    table, _ = the_only(event_plane, "AWS::DynamoDB::Table")
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": [table, "StreamArn"]}
    pattern, _ = (json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"])
    assert pattern == {"eventName": ["INSERT"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "TENANT_ID#"}]}}}}


def test_usage_is_counted_no_more_often_than_functions_read_it(mappings: dict[str, Json]) -> None:
    """A batch costs as much as an event: with one per second, a tenant that sends slowly would cost nearly twice."""
    mapping = mappings["count_usage"]
    assert mapping["MaximumBatchingWindowInSeconds"] == REMEMBERED_SECONDS
    assert mapping["BatchSize"] == 500


def test_a_record_that_cannot_be_counted_is_parked_and_blocks_no_other(
    event_plane: Json, mappings: dict[str, Json]
) -> None:
    mapping = mappings["count_usage"]
    assert mapping["BisectBatchOnFunctionError"] is False
    assert mapping["MaximumRetryAttempts"] > 0
    assert mapping["ParallelizationFactor"] > 1
    queue = mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    assert event_plane["Resources"][queue]["Type"] == "AWS::SQS::Queue"


# Berth's own events


def test_own_events_are_published_from_the_rows_that_say_that_something_ended(mappings: dict[str, Json]) -> None:
    mapping = mappings["publish_events"]
    assert "TenantsTable97BAC775StreamArn" in spelled(mapping["EventSourceArn"])
    history, rollouts, connections = (json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"])
    assert history["eventName"] == ["INSERT"]
    assert history["dynamodb"] == {
        "Keys": {"pk": {"S": [{"prefix": "HISTORY#"}]}},
        "NewImage": {"Status": {"S": ["Success", "Failure"]}},
    }
    assert rollouts["dynamodb"] == {
        "Keys": {"pk": {"S": [{"prefix": "ROLLOUT#"}]}, "sk": {"S": ["PLAN"]}},
        "NewImage": {"Status": {"S": ["HALTED", "SUCCEEDED"]}},
    }
    assert connections["dynamodb"] == {
        "Keys": {"sk": {"S": [{"prefix": "CONN#"}]}},
        "NewImage": {"status": {"S": ["disabled"]}},
    }


def test_deliveries_that_failed_for_good_are_published_by_way_of_the_function_that_counts(
    mappings: dict[str, Json],
) -> None:
    """The stream of events should have no third reader."""
    _, deliveries = (json.loads(each["Pattern"]) for each in mappings["count_usage"]["FilterCriteria"]["Filters"])
    assert deliveries == {
        "dynamodb": {"Keys": {"sk": {"S": [{"prefix": "DLV#"}]}}, "NewImage": {"state": {"S": ["failed"]}}}
    }


def test_a_change_is_published_from_the_first_record_on_and_tried_as_long_as_the_stream_has_it(
    event_plane: Json, mappings: dict[str, Json]
) -> None:
    mapping = mappings["publish_events"]
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert (mapping["MaximumRetryAttempts"], mapping["BisectBatchOnFunctionError"]) == (10_000, True)
    assert "MaximumRecordAgeInSeconds" not in mapping
    queue = mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    assert event_plane["Resources"][queue]["Type"] == "AWS::SQS::Queue"


def test_no_stream_has_more_than_two_readers(mappings: dict[str, Json]) -> None:
    """AWS throttles a third one."""
    readers = Counter(spelled(each["EventSourceArn"]) for each in mappings.values())
    assert max(readers.values()) <= 2


def test_the_bus_has_the_name_of_the_control_plane(event_plane: Json) -> None:
    _, bus = the_only(event_plane, "AWS::Events::EventBus")
    assert bus["Properties"]["Name"] == Names().own_events_bus == "Berth"
    assert "Policy" not in bus["Properties"], "no other account may publish"


# The end of a tenant


def test_purges_are_looked_for_after_every_delete_and_every_hour(
    event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    find_purges = {"Fn::GetAtt": [event_function_ids["find_purges"], "Arn"]}
    rules = [each for each in properties(event_plane, "AWS::Events::Rule") if each["Targets"][0]["Arn"] == find_purges]
    (pattern,) = (rule["EventPattern"] for rule in rules if "EventPattern" in rule)
    (schedule,) = (rule["ScheduleExpression"] for rule in rules if "ScheduleExpression" in rule)
    assert pattern["source"] == ["aws.states"]
    assert pattern["detail"]["status"] == ["SUCCEEDED"]
    (machine,) = pattern["detail"]["stateMachineArn"]
    assert machine == {"Fn::ImportValue": "Berth:ExportsOutputRefMachinesDelete586885037B384EAA"}
    assert schedule == "rate(1 hour)"
    for rule in rules:
        (target,) = rule["Targets"]
        assert "DeadLetterConfig" in target


def test_the_machine_runs_its_own_workflow_and_may_only_call_its_function(
    event_plane: Json, event_function_ids: dict[str, str], event_names: dict[str, str]
) -> None:
    _, resource = the_only(event_plane, "AWS::StepFunctions::StateMachine")
    machine = resource["Properties"]
    assert machine["DefinitionString"] == definition("purge_events", Settings())
    function = {"Fn::GetAtt": [event_function_ids["purge_events"], "Arn"]}
    assert machine["DefinitionSubstitutions"] == {"PurgeEventsFunctionArn": function}
    allowed = grants(event_plane, machine["RoleArn"]["Fn::GetAtt"][0], event_names)
    assert allowed.pop("*") <= WITHOUT_RESOURCES["X-Ray"] | WITHOUT_RESOURCES["log delivery"]
    assert allowed == {"the function purge_events": {"lambda:InvokeFunction"}}


def test_the_machine_is_traced_and_logs_without_execution_data(event_plane: Json) -> None:
    _, machine = the_only(event_plane, "AWS::StepFunctions::StateMachine")
    assert machine["Properties"]["TracingConfiguration"] == {"Enabled": True}
    assert machine["Properties"]["LoggingConfiguration"]["IncludeExecutionData"] is False


def test_a_purge_waits_longer_than_any_function_of_the_event_plane_runs(
    event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    settle = int(variables_of(event_plane, event_function_ids["purge_events"])["BERTH_PURGE_SETTLE_SECONDS"])
    timeouts = [event_plane["Resources"][each]["Properties"]["Timeout"] for each in event_function_ids.values()]
    assert settle == 900 > 2 * max(timeouts)
    step = event_plane["Resources"][event_function_ids["purge_events"]]["Properties"]["Timeout"]
    assert timedelta(seconds=settle + step) < HEARTBEAT_IS_LOST_AFTER
