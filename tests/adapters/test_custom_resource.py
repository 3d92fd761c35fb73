"""Answering CloudFormation: always, in time, in few bytes, under the same id. Over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from orchestrator.adapters.custom_resource import respond

MOST_BYTES = 4_096
STACK_ID = "arn:aws:cloudformation:eu-central-1:000000000000:stack/berth-tenant-" + "x" * 49 + "/" + "0" * 36


@dataclass
class CloudFormation:
    """Takes what is put to its signed address."""

    url: str = ""
    answers: list[dict[str, Any]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    content_types: list[str | None] = field(default_factory=list)
    status: int = 200

    def event(self, **changes: Any) -> dict[str, Any]:
        return {
            "RequestType": "Create",
            "ResponseURL": f"{self.url}/signed?Signature=a%2Fb",
            "StackId": STACK_ID,
            "RequestId": "5478764e-a29b-4f27-b4c3-4bcdf0ef9c6d",
            "LogicalResourceId": "L" * 255,
            **changes,
        }


@pytest.fixture
def cloudformation() -> Iterator[CloudFormation]:
    heard = CloudFormation()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.answers.append(json.loads(body))
            heard.sizes.append(len(body))
            heard.content_types.append(self.headers["Content-Type"])
            self.send_response(heard.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing: pytest's output is for failures."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        heard.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield heard
        server.shutdown()
        thread.join()


def succeed() -> Mapping[str, str]:
    return {"TemplateUrl": "https://example.com"}


def failing(message: str) -> Any:
    def work() -> Mapping[str, str]:
        raise ValueError(message)

    return work


def test_success_is_told_with_its_data_and_the_ids_of_the_request(cloudformation: CloudFormation) -> None:
    event = cloudformation.event()
    assert respond(event, succeed, physical_id="release") is None
    assert cloudformation.answers == [
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


def test_the_content_type_is_empty_as_the_address_was_signed_for(cloudformation: CloudFormation) -> None:
    respond(cloudformation.event(), succeed, physical_id="release")
    assert cloudformation.content_types == [""]


def test_failure_is_told_with_its_reason_and_returned(cloudformation: CloudFormation) -> None:
    reason = respond(cloudformation.event(), failing("it broke"), physical_id="release")
    assert reason == "ValueError: it broke"
    (answer,) = cloudformation.answers
    assert (answer["Status"], answer["Reason"], answer["Data"]) == ("FAILED", reason, {})


def test_an_error_without_words_is_still_a_failure(cloudformation: CloudFormation) -> None:
    assert respond(cloudformation.event(), failing(""), physical_id="release")
    assert cloudformation.answers[0]["Status"] == "FAILED"


@pytest.mark.parametrize("request_type", ["Update", "Delete"])
@pytest.mark.parametrize("work", [succeed, failing("it broke")], ids=["success", "failure"])
def test_the_physical_id_never_changes(cloudformation: CloudFormation, request_type: str, work: Any) -> None:
    event = cloudformation.event(RequestType=request_type, PhysicalResourceId="as it was called long ago")
    respond(event, work, physical_id="release")
    assert cloudformation.answers[0]["PhysicalResourceId"] == "as it was called long ago"


def test_a_failed_creation_bears_the_id_that_it_would_have_had(cloudformation: CloudFormation) -> None:
    respond(cloudformation.event(), failing("it broke"), physical_id="release")
    assert cloudformation.answers[0]["PhysicalResourceId"] == "release"


@pytest.mark.parametrize(
    "character",
    ["x", "é", "€", "😀", '"', "\\", "\n", "\x00", "\x1b", "\x7f"],
    ids=["1 byte", "2 bytes", "3 bytes", "4 bytes", "quote", "backslash", "newline", "null", "escape", "delete"],
)
def test_an_answer_fits_cloudformation_whatever_went_wrong(cloudformation: CloudFormation, character: str) -> None:
    event = cloudformation.event(PhysicalResourceId="tenant-metadata")
    respond(event, failing(character * 10_000), physical_id="tenant-metadata")
    assert cloudformation.sizes[0] <= MOST_BYTES
    assert cloudformation.answers[0]["Status"] == "FAILED"
    assert len(cloudformation.answers[0]["Reason"]) > 100


def test_an_error_that_cannot_be_encoded_is_answered_too(cloudformation: CloudFormation) -> None:
    respond(cloudformation.event(), failing("\ud800 is half a character"), physical_id="release")
    assert [answer["Status"] for answer in cloudformation.answers] == ["FAILED"]


def test_an_answer_that_is_not_taken_is_an_error_so_that_the_function_is_called_again(
    cloudformation: CloudFormation,
) -> None:
    cloudformation.status = 503
    with pytest.raises(OSError, match="503"):
        respond(cloudformation.event(), succeed, physical_id="release")
