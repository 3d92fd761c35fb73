"""Mail in the event plane's template: what SES reports, who gets the reports, and what that function may do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.adapters.ses_reports import CONFIGURATION_SET_TAG
from stacks.project import ROOT
from tests.stacks.conftest import MAIL_FROM, functions_in
from tests.stacks.policies import Grants, grants, listed, spelled, statements
from tests.stacks.test_alarms import alarms_of
from tests.stacks.test_event_permissions import CHANGES_CONNECTIONS, FUNCTIONS
from tests.stacks.test_permissions import EVERY_FUNCTION

Json = dict[str, Any]
CONFIGURATION_SET = "BerthEvents"


def only(template: Json, resource_type: str) -> tuple[str, Json]:
    (found,) = (
        (name, each["Properties"]) for name, each in template["Resources"].items() if each["Type"] == resource_type
    )
    return found


@pytest.fixture(scope="session")
def mail_functions(events_with_mail: Json) -> dict[str, str]:
    return functions_in(events_with_mail)


@pytest.fixture(scope="session")
def mail_names(events_with_mail: Json, event_names: dict[str, str], mail_functions: dict[str, str]) -> dict[str, str]:
    operators = events_with_mail["Resources"][mail_functions["event_operators"]]["Properties"]
    queues = json.loads(spelled(operators["Environment"]["Variables"]["BERTH_DEAD_LETTER_QUEUES"]))
    here = "arn:<AWS::Partition>:ses:<AWS::Region>:<AWS::AccountId>"
    set_id, _ = only(events_with_mail, "AWS::SES::ConfigurationSet")
    return event_names | {
        **{f"<{queue.strip('<>')}.Arn>": f"dead letters: {holds}" for holds, queue in queues.items()},
        f"{here}:identity/*": "any identity",
        f"{here}:configuration-set/<{set_id}>": "the configuration set",
    }


def granted(template: Json, function: str, names: dict[str, str]) -> Grants:
    properties = template["Resources"][function]["Properties"]
    own_log_group = {f"<{properties['LoggingConfig']['LogGroup']['Ref']}.Arn>": "its own log group"}
    return grants(template, properties["Role"]["Fn::GetAtt"][0], names | own_log_group)


def test_without_an_address_that_mail_comes_from_there_is_nothing_of_it(event_plane: Json) -> None:
    assert not [each for each in event_plane["Resources"].values() if each["Type"].startswith("AWS::SES::")]
    assert "process_bounces" not in functions_in(event_plane)


def test_ses_reports_bounces_and_complaints_and_nothing_else(events_with_mail: Json) -> None:
    set_id, properties = only(events_with_mail, "AWS::SES::ConfigurationSet")
    assert properties["Name"] == CONFIGURATION_SET
    _, destination = only(events_with_mail, "AWS::SES::ConfigurationSetEventDestination")
    assert destination["ConfigurationSetName"] == {"Ref": set_id}
    given = destination["EventDestination"]
    assert (given["MatchingEventTypes"], given["Enabled"]) == (["bounce", "complaint"], True)
    # SES refuses any other bus.
    assert spelled(given["EventBridgeDestination"]["EventBusArn"]).endswith(":event-bus/default")


def test_only_reports_about_mails_of_this_configuration_set_reach_the_function(
    events_with_mail: Json, mail_functions: dict[str, str]
) -> None:
    function = mail_functions["process_bounces"]
    (rule,) = (
        each["Properties"]
        for each in events_with_mail["Resources"].values()
        if each["Type"] == "AWS::Events::Rule"
        if any(target["Arn"] == {"Fn::GetAtt": [function, "Arn"]} for target in each["Properties"]["Targets"])
    )
    set_id, _ = only(events_with_mail, "AWS::SES::ConfigurationSet")
    assert rule["EventPattern"] == {
        "source": ["aws.ses"],
        "detail-type": ["Email Bounced", "Email Complaint Received"],
        "detail": {"mail": {"tags": {CONFIGURATION_SET_TAG: [{"Ref": set_id}]}}},
    }
    assert "EventBusName" not in rule
    (target,) = rule["Targets"]
    dead_letters = events_with_mail["Resources"][function]["Properties"]["DeadLetterConfig"]["TargetArn"]
    assert target["DeadLetterConfig"]["Arn"] == dead_letters


def test_the_function_may_disable_connections_and_do_nothing_else(
    events_with_mail: Json, mail_functions: dict[str, str], mail_names: dict[str, str]
) -> None:
    function = mail_functions["process_bounces"]
    assert granted(events_with_mail, function, mail_names) == {
        **EVERY_FUNCTION,
        **CHANGES_CONNECTIONS,
        "dead letters: bounces and complaints": {"sqs:SendMessage"},
    }
    variables = events_with_mail["Resources"][function]["Properties"]["Environment"]["Variables"]
    assert "BERTH_EVENTS_TABLE" in variables


def test_deliverers_send_with_the_configuration_set_and_other_functions_have_the_same_permissions_as_without_mail(
    events_with_mail: Json, mail_functions: dict[str, str], mail_names: dict[str, str]
) -> None:
    sends = f", if {{'StringEquals': {{'ses:FromAddress': '{MAIL_FROM}'}}}}"
    expected = {name: dict(EVERY_FUNCTION | each) for name, each in FUNCTIONS.items()}
    expected["event_operators"]["dead letters: bounces and complaints"] = {"sqs:GetQueueAttributes"}
    # In the sandbox, SES asks for the permission on the identity of the recipient, too.
    for resource in ("any identity", "the configuration set"):
        expected["deliver_events"][resource + sends] = {"ses:SendEmail"}
    assert set(mail_functions) == {*expected, "process_bounces"}
    for name, permissions in expected.items():
        assert granted(events_with_mail, mail_functions[name], mail_names) == permissions
    variables = events_with_mail["Resources"][mail_functions["deliver_events"]]["Properties"]["Environment"][
        "Variables"
    ]
    set_id, _ = only(events_with_mail, "AWS::SES::ConfigurationSet")
    assert variables["BERTH_MAIL_CONFIGURATION_SET"] == {"Ref": set_id}


def test_no_role_may_change_the_reports_of_ses(events_with_mail: Json) -> None:
    actions = {action for _, each in statements(events_with_mail) for action in listed(each["Action"])}
    assert {action for action in actions if action.startswith("ses:")} == {"ses:SendEmail"}


def test_reports_that_could_not_be_processed_go_off_and_are_in_the_runbook(
    event_plane: Json, events_with_mail: Json
) -> None:
    added = alarms_of(events_with_mail).keys() - alarms_of(event_plane).keys()
    # docs/costs.md has the number.
    assert added == {"BouncesNotProcessed"}
    runbook = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    assert "\n## BouncesNotProcessed\n" in runbook
