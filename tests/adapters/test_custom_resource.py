"""Answering CloudFormation: always, in time, in few bytes, under the same id. Over real HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters import custom_resource
from orchestrator.adapters.custom_resource import parse_event, respond, respond_to_deployment, send_response
from orchestrator.common.errors import InvalidRequest
from tests.adapters.conftest import Endpoint
from tests.present import present

MAX_BYTES = 4_096


def succeed() -> Mapping[str, str]:
    return {"TemplateUrl": "https://example.com"}


def failing(message: str) -> Any:
    def work() -> Mapping[str, str]:
        raise ValueError(message)

    return work


def test_success_is_sent_with_data_and_the_ids_of_the_request(endpoint: Endpoint) -> None:
    event = endpoint.event()
    assert respond(event, succeed, physical_id="release") is None
    assert endpoint.answers == [
        {
            "Status": "SUCCESS",
            "Reason": "",
            "PhysicalResourceId": "release",
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
            "Data": {"TemplateUrl": "https://example.com"},
        }
    ]


def test_the_content_type_is_empty_because_the_url_is_signed_so(endpoint: Endpoint) -> None:
    respond(endpoint.event(), succeed, physical_id="release")
    assert endpoint.content_types == [""]


def test_failure_is_sent_with_its_reason_and_returned(endpoint: Endpoint) -> None:
    reason = respond(endpoint.event(), failing("it broke"), physical_id="release")
    assert reason == "ValueError: it broke"
    (answer,) = endpoint.answers
    assert (answer["Status"], answer["Reason"], answer["Data"]) == ("FAILED", reason, {})


def test_an_error_without_a_message_is_a_failure(endpoint: Endpoint) -> None:
    assert respond(endpoint.event(), failing(""), physical_id="release")
    assert endpoint.answers[0]["Status"] == "FAILED"


@pytest.mark.parametrize("request_type", ["Update", "Delete"])
@pytest.mark.parametrize("work", [succeed, failing("it broke")], ids=["success", "failure"])
def test_the_physical_id_never_changes(endpoint: Endpoint, request_type: str, work: Any) -> None:
    event = endpoint.event(RequestType=request_type, PhysicalResourceId="as it was called long ago")
    respond(event, work, physical_id="release")
    assert endpoint.answers[0]["PhysicalResourceId"] == "as it was called long ago"


def test_a_failed_creation_has_the_usual_physical_id(endpoint: Endpoint) -> None:
    respond(endpoint.event(), failing("it broke"), physical_id="release")
    assert endpoint.answers[0]["PhysicalResourceId"] == "release"


@pytest.mark.parametrize(
    "character",
    ["x", "é", "€", "😀", '"', "\\", "\n", "\x00", "\x1b", "\x7f"],
    ids=["1 byte", "2 bytes", "3 bytes", "4 bytes", "quote", "backslash", "newline", "null", "escape", "delete"],
)
def test_a_response_is_never_too_large_for_cloudformation(endpoint: Endpoint, character: str) -> None:
    event = endpoint.event(PhysicalResourceId="tenant-metadata")
    respond(event, failing(character * 10_000), physical_id="tenant-metadata")
    assert endpoint.sizes[0] <= MAX_BYTES
    assert endpoint.answers[0]["Status"] == "FAILED"
    assert len(endpoint.answers[0]["Reason"]) > 100


def test_an_error_that_cannot_be_encoded_gets_a_response(endpoint: Endpoint) -> None:
    respond(endpoint.event(), failing("\ud800 is half a character"), physical_id="release")
    assert [answer["Status"] for answer in endpoint.answers] == ["FAILED"]


def test_a_response_that_is_not_accepted_is_an_error_so_that_lambda_retries(
    endpoint: Endpoint,
) -> None:
    endpoint.refusals = 100
    with pytest.raises(OSError, match="503"):
        respond(endpoint.event(), succeed, physical_id="release")


def test_a_response_is_sent_again_without_repeating_the_work(endpoint: Endpoint) -> None:
    worked: list[int] = []

    def work() -> Mapping[str, str]:
        worked.append(1)
        return {}

    endpoint.refusals = 2
    respond(endpoint.event(), work, physical_id="release")
    assert [answer["Status"] for answer in endpoint.answers] == ["SUCCESS"] * 3
    assert worked == [1]


def test_a_response_without_a_reason_is_a_success(endpoint: Endpoint) -> None:
    # A custom resource whose work is done elsewhere says itself when its id changes.
    event = endpoint.event(RequestType="Update", PhysicalResourceId="acme")
    send_response(event, physical_id="globex", data={"QueueUrl": "https://example.com"})
    assert endpoint.answers == [
        {
            "Status": "SUCCESS",
            "Reason": "",
            "PhysicalResourceId": "globex",
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
            "Data": {"QueueUrl": "https://example.com"},
        }
    ]


def test_a_response_with_a_reason_is_a_failure_and_the_reason_is_cut(endpoint: Endpoint) -> None:
    send_response(endpoint.event(), physical_id="acme", reason="it broke\n" + "€" * 10_000)
    (answer,) = endpoint.answers
    assert (answer["Status"], answer["PhysicalResourceId"], answer["Data"]) == ("FAILED", "acme", {})
    assert answer["Reason"].startswith("it broke €")
    assert endpoint.sizes[0] <= MAX_BYTES


def test_a_response_that_is_not_accepted_is_sent_again(endpoint: Endpoint) -> None:
    endpoint.refusals = 2
    send_response(endpoint.event(), physical_id="acme")
    assert [answer["Status"] for answer in endpoint.answers] == ["SUCCESS"] * 3


def test_a_response_has_the_ids_of_its_event(endpoint: Endpoint) -> None:
    event = endpoint.event()
    del event["StackId"]
    assert respond(event, failing("it broke"), physical_id="release")
    (answer,) = endpoint.answers
    assert (answer["Status"], answer["StackId"], answer["RequestId"]) == ("FAILED", "", event["RequestId"])


# An event comes from whoever may invoke the function, and so does the address in it.

CLOUDFORMATIONS = [
    "https://cloudformation-custom-resource-response-eucentral1.s3.amazonaws.com/arn%3Aaws?X-Amz-Signature=a",
    "https://cloudformation-custom-resource-response-eucentral1.s3.eu-central-1.amazonaws.com/arn",
    "https://cloudformation-custom-resource-response-eucentral1.s3-eu-central-1.amazonaws.com/arn",
]
SOMEBODY_ELSES = [
    "nonsense",
    "http://..:80/",
    "http://[",
    "https://example.com/",
    "http://169.254.169.254/latest/meta-data/",
    "http://127.0.0.1:4566/_ministack/cfn-response/token",
    "http://cloudformation-custom-resource-response-eucentral1.s3.amazonaws.com/not-encrypted",
    "https://cloudformation-custom-resource-response-useast1.s3.amazonaws.com/another-region",
    "https://cloudformation-custom-resource-response-attacker.s3.amazonaws.com/a-bucket-of-that-name",
    "https://cloudformation-custom-resource-response-eucentral1.s3.amazonaws.com.example.com/",
    "https://cloudformation-custom-resource-response-eucentral1.s3.amazonaws.com:8443/",
    "https://cloudformation-custom-resource-response-eucentral1.s3.amazonaws.com@example.com/",
    "https://cloudformation-custom-resource-response-eucentral1.s3.amazonaws.com",
    "https://somebody@cloudformation-custom-resource-response-eucentral1.s3.amazonaws.com/",
    "https://example.com/cloudformation-custom-resource-response-eucentral1.s3.amazonaws.com/",
    "https://cloudformation-custom-resource-response-eucentral1.s3.amazonaws.com/a\r\nHost: example.com",
    # Buckets' names are unique in a partition, so in another partition this one may be anybody's.
    "https://cloudformation-custom-resource-response-eucentral1.s3.amazonaws.com.cn/another-partition",
    "https://cloudformation-custom-resource-response-eucentral1.s3.cn-north-1.amazonaws.com.cn/another-partition",
    "https://cloudformation-custom-resource-response-eucentral1.s3.eusc-de-east-1.amazonaws.eu/another-partition",
    "https://cloudformation-custom-resource-response-eucentral1.s3.us-east-1.amazonaws.com/another-regions-host",
    "https://cloudformation-custom-resource-response-eucentral1.s3-accelerate.amazonaws.com/another-service",
    "https://cloudformation-custom-resource-response-eucentral1.s3-website-eu-central-1.amazonaws.com/another-service",
    "https://cloudformation-custom-resource-response-eucentral1.s3.eu-central-1xamazonaws.com/no-dot",
    "https://cloudformation-custom-resource-response-eucentral1.s3.eu-central-1.amazonawsxcom/no-dot",
]


@pytest.fixture
def in_frankfurt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_LOCATION", "aws:eu-central-1:000000000000")
    monkeypatch.delenv("BERTH_RESPONSE_URL_PREFIX", raising=False)


@pytest.mark.usefixtures("in_frankfurt")
@pytest.mark.parametrize("url", CLOUDFORMATIONS)
def test_a_response_goes_to_cloudformations_bucket_in_this_region(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(custom_resource, "_put", lambda address, _body: sent.append(address))
    event = parse_event(Endpoint().event(ResponseURL=url))
    send_response(event, physical_id="release")
    assert sent == [url]


@pytest.mark.usefixtures("in_frankfurt")
@pytest.mark.parametrize("url", SOMEBODY_ELSES)
def test_an_event_with_another_response_url_is_refused_first(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(custom_resource, "_put", lambda address, _body: sent.append(address))
    event = Endpoint().event(ResponseURL=url)
    with pytest.raises(InvalidRequest, match="ResponseURL"):
        parse_event(event)
    with pytest.raises(InvalidRequest, match="ResponseURL"):
        send_response(event, physical_id="release")
    assert sent == []


BUCKET_IN_CHINA = "https://cloudformation-custom-resource-response-cnnorth1.s3"


@pytest.mark.parametrize(
    ("location", "ours", "anothers"),
    [
        (
            "aws-cn:cn-north-1:000000000000",
            f"{BUCKET_IN_CHINA}.cn-north-1.amazonaws.com.cn/arn",
            f"{BUCKET_IN_CHINA}.cn-north-1.amazonaws.com/arn",
        ),
        (
            "aws-us-gov:us-gov-west-1:000000000000",
            "https://cloudformation-custom-resource-response-usgovwest1.s3.us-gov-west-1.amazonaws.com/arn",
            "https://cloudformation-custom-resource-response-usgovwest1.s3.us-gov-west-1.amazonaws.com.cn/arn",
        ),
        (
            "aws-eusc:eusc-de-east-1:000000000000",
            "https://cloudformation-custom-resource-response-euscdeeast1.s3.eusc-de-east-1.amazonaws.eu/arn",
            "https://cloudformation-custom-resource-response-euscdeeast1.s3.eusc-de-east-1.amazonaws.com/arn",
        ),
    ],
)
def test_a_response_stays_in_the_partition(
    location: str, ours: str, anothers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERTH_LOCATION", location)
    monkeypatch.delenv("BERTH_RESPONSE_URL_PREFIX", raising=False)
    assert parse_event(Endpoint().event(ResponseURL=ours))["ResponseURL"] == ours
    with pytest.raises(InvalidRequest, match="ResponseURL"):
        parse_event(Endpoint().event(ResponseURL=anothers))


def test_in_an_unknown_partition_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_LOCATION", "aws-new:new-east-1:000000000000")
    monkeypatch.delenv("BERTH_RESPONSE_URL_PREFIX", raising=False)
    url = "https://cloudformation-custom-resource-response-neweast1.s3.new-east-1.amazonaws.com/arn"
    with pytest.raises(InvalidRequest, match="partition aws-new"):
        parse_event(Endpoint().event(ResponseURL=url))


@pytest.mark.parametrize("url", ["http://127.0.0.1:45669/answer", "http://127.0.0.1:4566@example.com/answer"])
def test_on_an_emulator_responses_go_only_to_its_own_url(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_RESPONSE_URL_PREFIX", "http://127.0.0.1:4566/")
    with pytest.raises(InvalidRequest, match="ResponseURL"):
        parse_event(Endpoint().event(ResponseURL=url))


# The deployment's own resources


class Permission:
    """Comes after so many tries."""

    def __init__(self, after: int, code: str = "AccessDenied") -> None:
        self.tries, self._after, self._code = 0, after, code

    def __call__(self) -> Mapping[str, str]:
        self.tries += 1
        if self.tries <= self._after:
            raise ClientError({"Error": {"Code": self._code, "Message": "not authorized"}}, "GetObject")
        return {"TemplateUrl": "https://releases.example/"}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []
    monkeypatch.setattr(custom_resource.time, "sleep", made.append)
    return made


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException"])
def test_a_role_that_is_not_visible_yet_is_waited_for(endpoint: Endpoint, pauses: list[float], code: str) -> None:
    work = Permission(after=3, code=code)
    response = respond_to_deployment(endpoint.event(), work, confirm=lambda: None, physical_id="release")
    assert response is None
    assert endpoint.answers[-1]["Status"] == "SUCCESS"
    assert len(pauses) == 3


def test_a_role_without_permission_fails_the_deployment_with_the_reason(
    endpoint: Endpoint, pauses: list[float]
) -> None:
    work = Permission(after=1_000)
    response = present(respond_to_deployment(endpoint.event(), work, confirm=lambda: None, physical_id="release"))
    assert "not authorized" in response
    assert work.tries == len(pauses) + 1
    assert sum(pauses) < 60, "the function would be over before it has answered"


def test_any_other_error_is_sent_at_once(endpoint: Endpoint, pauses: list[float]) -> None:
    work = Permission(after=1, code="NoSuchKey")
    assert respond_to_deployment(endpoint.event(), work, confirm=lambda: None, physical_id="release")
    assert pauses == []
