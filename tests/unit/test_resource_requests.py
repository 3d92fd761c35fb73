"""CloudFormation's events for custom resources are parsed, or refused before anything is done."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.stack_arns import StackArn
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants import resource_requests
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Queue, Request
from orchestrator.tenants.resource_requests import (
    MAX_NOTES,
    Claim,
    Kind,
    MetadataRequest,
    OnDelete,
    ReleaseRequest,
    RolloutRequest,
    TenantQueueRequest,
    answerable,
    parse_claim,
    parse_release_request,
    parse_rollout_request,
    parse_tenant_queue_request,
)
from orchestrator.tenants.stack_resources import StackResource
from tests.fakes import A_KEY, ACME, LOCATION, NAMES, QUEUE

STACK = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{NAMES.stack_of(ACME)}/1"
RESOURCE = StackResource.parse(STACK, "Queue")
HERE = RESOURCE.stack.location
METADATA = {"TenantId": "acme", "InboundQueueArn": QUEUE.arn, "InboundQueueUrl": QUEUE.url}
RELEASE = {"Version": "0.2.0", "Digest": "0f" * 32, "SourceKey": "template.json"}
TENANT_QUEUE = {"TenantId": "acme"}


def parse_metadata_request(event: object) -> MetadataRequest:
    return resource_requests.parse_metadata_request(event, location=LOCATION, names=NAMES)


PARSERS = [
    pytest.param(parse_metadata_request, METADATA, id="metadata"),
    pytest.param(parse_release_request, RELEASE, id="release"),
    pytest.param(parse_rollout_request, {"Version": "0.2.0"}, id="rollout"),
    pytest.param(parse_tenant_queue_request, TENANT_QUEUE, id="tenant queue"),
]


def an_event(properties: object, kind: str = "Create", **more: object) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ServiceToken": "arn:aws:lambda:eu-west-1:000000000000:function:berth",
        "ResponseURL": "https://cloudformation.example/answer",
        "StackId": STACK,
        "RequestId": "a-request",
        "LogicalResourceId": "Queue",
        "ResourceType": "Custom::TenantQueue",
        "ResourceProperties": properties,
        **more,
    }


# Fields of all events


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize(("parse", "properties"), PARSERS)
def test_properties_added_by_cloudformation_are_accepted(parse: Any, properties: dict[str, str], kind: Kind) -> None:
    """The service token is among the properties; a physical id comes with all but the first event."""
    event = an_event({**properties, "ServiceToken": "arn"}, kind, PhysicalResourceId="acme", OldResourceProperties={})
    assert parse(event)


@pytest.mark.parametrize(
    "missing",
    ["RequestType", "ResponseURL", "StackId", "RequestId", "LogicalResourceId", "ResourceProperties"],
)
@pytest.mark.parametrize(("parse", "properties"), PARSERS)
def test_an_event_that_could_not_be_answered_is_refused(parse: Any, properties: dict[str, str], missing: str) -> None:
    event = an_event(properties)
    del event[missing]
    with pytest.raises(InvalidRequest, match=missing):
        parse(event)


@pytest.mark.parametrize("kind", ["create", "Read", "", None, 1])
@pytest.mark.parametrize(("parse", "properties"), PARSERS)
def test_other_kinds_of_request_are_refused(parse: Any, properties: dict[str, str], kind: Any) -> None:
    with pytest.raises(InvalidRequest, match="RequestType"):
        parse(an_event(properties, kind))


@pytest.mark.parametrize("event", [None, [], "event", 1, {}])
@pytest.mark.parametrize(("parse", "_properties"), PARSERS)
def test_input_that_is_no_event_is_refused(parse: Any, _properties: object, event: object) -> None:
    with pytest.raises(InvalidRequest):
        parse(event)


@pytest.mark.parametrize("properties", [None, [], "TenantId", {}])
@pytest.mark.parametrize(("parse", "_properties"), PARSERS)
def test_unknown_properties_are_refused(parse: Any, _properties: object, properties: object) -> None:
    with pytest.raises(InvalidRequest, match="ResourceProperties"):
        parse(an_event(properties))


# Each by itself


@pytest.mark.parametrize("kind", list(Kind))
def test_a_stack_says_what_its_queue_is(kind: Kind) -> None:
    assert parse_metadata_request(an_event(METADATA, kind)) == MetadataRequest(
        kind, ACME, StackArn.parse(STACK), Queue(QUEUE.arn, QUEUE.url)
    )


FORGED = {
    "another stack": STACK.replace(NAMES.stack_of(ACME), "billing"),
    "another tenant's stack": STACK.replace(NAMES.stack_of(ACME), NAMES.stack_of(TenantId("acme-1"))),
    "a name that begins alike": STACK.replace(NAMES.stack_of(ACME), f"{NAMES.stack_of(ACME)}-1"),
    "another account": STACK.replace("000000000000", "111111111111"),
    "another region": STACK.replace("eu-west-1", "eu-west-2"),
    "another partition": STACK.replace("arn:aws:", "arn:aws-cn:"),
    "a change set": STACK.replace(":stack/", ":changeSet/"),
    "an ARN inside another": "arn:aws:cloudformation:eu-west-2:111111111111:stack/evil/x:" + STACK.partition("0:")[2],
    "something before it": f"x{STACK}",
    "something after it": f"{STACK}/more",
    "a newline": f"{STACK}\n",
    "a name": NAMES.stack_of(ACME),
}


@pytest.mark.parametrize("stack_id", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("kind", list(Kind))
def test_no_other_stack_may_say_what_a_tenants_queue_is(kind: Kind, stack_id: str) -> None:
    with pytest.raises(InvalidRequest, match=r"is not the (stack of tenant acme|ARN of a stack)"):
        parse_metadata_request(an_event(METADATA, kind, StackId=stack_id))


@pytest.mark.parametrize("name", ["old-acme", "old-globex", NAMES.stack_of(ACME)])
def test_stacks_of_an_earlier_system_may_ask_where_that_is_set_and_the_record_says_whose_they_are(name: str) -> None:
    stack_id = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{name}/1"
    event = an_event(METADATA, StackId=stack_id)
    parse = partial(resource_requests.parse_metadata_request, event, location=LOCATION)
    assert str(parse(names=Names("Berth", ("old-",))).stack) == stack_id
    for names in (NAMES, Names("Berth", ("older-",))):
        if name.startswith("old-"):
            with pytest.raises(InvalidRequest, match="is not the stack of tenant"):
                parse(names=names)


@pytest.mark.parametrize("prefix", ["old-", "berth-tenant-"])
def test_another_tenants_stack_may_not_ask_because_its_name_begins_alike(prefix: str) -> None:
    other = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{NAMES.stack_of(TenantId('globex'))}/1"
    with pytest.raises(InvalidRequest, match="is not the stack of tenant"):
        resource_requests.parse_metadata_request(
            an_event(METADATA, StackId=other), location=LOCATION, names=Names("Berth", (prefix,))
        )


@pytest.mark.parametrize("missing", list(METADATA))
def test_a_stack_has_to_say_all_of_it(missing: str) -> None:
    with pytest.raises(InvalidRequest, match=missing):
        parse_metadata_request(an_event({name: value for name, value in METADATA.items() if name != missing}))


def test_a_release_is_asked_to_be_published() -> None:
    assert parse_release_request(an_event(RELEASE)) == ReleaseRequest("0.2.0", "0f" * 32, "template.json")


@pytest.mark.parametrize("notes", ["", "- Everything is better.", "x" * MAX_NOTES], ids=["none", "some", "most"])
def test_a_release_may_come_with_what_is_new_in_it(notes: str) -> None:
    assert parse_release_request(an_event({**RELEASE, "Notes": notes})).notes == notes


@pytest.mark.parametrize(
    ("before", "now", "another"),
    [
        ({}, {}, False),
        ({}, {"KmsKeyArn": A_KEY}, True),
        ({"KmsKeyArn": A_KEY}, {"KmsKeyArn": A_KEY}, False),
        ({"KmsKeyArn": A_KEY}, {"KmsKeyArn": "another"}, True),
        ({"KmsKeyArn": A_KEY}, {}, True),
    ],
    ids=["none", "the first", "the same", "another", "none any more"],
)
def test_a_release_is_told_of_another_key(before: dict[str, str], now: dict[str, str], another: bool) -> None:
    changed = an_event({**RELEASE, **now}, "Update", OldResourceProperties={**RELEASE, **before})
    assert parse_release_request(changed).key_changed is another
    assert parse_release_request(an_event({**RELEASE, **now})).key_changed is False


def test_a_rollout_is_asked_for_by_a_deployment_of_another_version() -> None:
    asked = {"Version": "0.2.0"}
    assert parse_rollout_request(an_event(asked)) == RolloutRequest("0.2.0", version_changed=True)
    before = {"Version": "0.1.0"}
    assert parse_rollout_request(an_event(asked, "Update", OldResourceProperties=before)).version_changed
    assert not parse_rollout_request(an_event(asked, "Update", OldResourceProperties=asked)).version_changed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Version", "0.2"),
        ("Version", "0.2.0\n"),
        ("Version", "v0.2.0"),
        ("Version", "../0.2.0"),
        ("Digest", "0F" * 32),
        ("Digest", "0f" * 31),
        ("Digest", "0f" * 32 + "\n"),
        ("SourceKey", ""),
        ("Notes", "x" * (MAX_NOTES + 1)),
    ],
)
def test_a_release_that_says_nonsense_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidRequest, match=name):
        parse_release_request(an_event({**RELEASE, name: value}))


def test_a_tenants_queue_needs_nothing_but_the_tenant_and_keeps_it() -> None:
    assert parse_tenant_queue_request(an_event(TENANT_QUEUE)) == TenantQueueRequest(
        Kind.CREATE, ACME, Request(by=str(RESOURCE), resource=RESOURCE), OnDelete.RETAIN, replaces=None
    )


def test_all_that_may_be_said_about_a_tenants_queue() -> None:
    properties = {**TENANT_QUEUE, "Version": "0.1.0", "Labels": {"team": "billing"}, "OnDelete": "delete"}
    assert parse_tenant_queue_request(an_event(properties, "Delete")) == TenantQueueRequest(
        Kind.DELETE,
        ACME,
        Request(by=str(RESOURCE), resource=RESOURCE, labels={"team": "billing"}, pin="0.1.0"),
        OnDelete.DELETE,
        replaces=None,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TenantId", "no such id"),
        ("TenantId", "acme\n"),
        ("TenantId", "a" * 41),
        ("TenantId", "berth-warm-0123456789abcdef"),
        ("TenantId", ["acme"]),
        ("Version", "latest"),
        ("Version", ""),
        ("Labels", "team=billing"),
        ("Labels", {"team": 1}),
        ("Labels", {"-": "billing"}),
        ("Labels", {"team": "<script>"}),
        ("Labels", {f"label-{number}": "" for number in range(21)}),
        ("OnDelete", "Delete"),
        ("OnDelete", "snapshot"),
        ("OnDelete", True),
    ],
)
def test_a_tenants_queue_that_says_nonsense_is_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidRequest):
        parse_tenant_queue_request(an_event({**TENANT_QUEUE, name: value}))


def test_the_same_resource_is_the_same_asker_and_no_other_is() -> None:
    first = parse_tenant_queue_request(an_event(TENANT_QUEUE))
    again = parse_tenant_queue_request(an_event(TENANT_QUEUE, "Delete", RequestId="another-request"))
    others = [
        parse_tenant_queue_request(an_event(TENANT_QUEUE, LogicalResourceId="Queue2")),
        parse_tenant_queue_request(an_event(TENANT_QUEUE, StackId=f"{STACK}2")),
    ]
    assert first.request.resource == again.request.resource
    assert first.request.resource not in {other.request.resource for other in others}


@pytest.mark.parametrize(
    ("before", "replaced"),
    [
        ({"TenantId": "other"}, TenantId.parse("other")),
        ({"TenantId": "Acme"}, TenantId.parse("Acme")),
        ({"TenantId": "acme", "Version": "0.1.0"}, None),
        ({}, None),
    ],
)
def test_an_update_says_whose_queue_it_was_before(before: dict[str, str], replaced: TenantId | None) -> None:
    event = an_event(TENANT_QUEUE, "Update", PhysicalResourceId="other", OldResourceProperties=before)
    assert parse_tenant_queue_request(event).replaces == replaced


def test_undoing_a_change_of_the_tenant_asks_for_the_tenant_that_the_resource_has_been_all_the_time() -> None:
    before = {**TENANT_QUEUE, "TenantId": "other", "Version": "0.1.0"}
    event = an_event(TENANT_QUEUE, "Update", PhysicalResourceId="acme", OldResourceProperties=before)
    asked = parse_tenant_queue_request(event)
    assert (asked.replaces, asked.unpin) == (None, False)


@pytest.mark.parametrize(
    ("before", "now", "unpin"),
    [
        ({"TenantId": "acme", "Version": "0.1.0"}, {}, True),
        ({"TenantId": "acme", "Version": "0.1.0"}, {"Version": "0.2.0"}, False),
        ({"TenantId": "acme"}, {}, False),
        ({"TenantId": "other", "Version": "0.1.0"}, {}, False),
    ],
)
def test_an_update_that_names_no_version_any_more_lifts_the_pin_of_the_same_tenant(
    before: dict[str, str], now: dict[str, str], unpin: bool
) -> None:
    properties = {"TenantId": "acme", **now}
    event = an_event(properties, "Update", PhysicalResourceId="other", OldResourceProperties=before)
    assert parse_tenant_queue_request(event).unpin is unpin


@pytest.mark.parametrize("before", ["no such id", "", "a" * 100, None, 1, ["acme"], {"Ref": "Tenant"}])
def test_an_update_from_what_was_refused_is_understood_or_the_stack_could_not_be_rolled_back(before: object) -> None:
    """CloudFormation undoes an update by another one, whose old properties are those that have just been refused."""
    event = an_event(
        TENANT_QUEUE,
        "Update",
        PhysicalResourceId="acme",
        OldResourceProperties={"TenantId": before, "Version": "nonsense", "OnDelete": 1},
    )
    asked = parse_tenant_queue_request(event)
    assert asked.tenant == ACME
    assert asked.replaces is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PROPERTIES = st.sampled_from(["TenantId", "Version", "Labels", "OnDelete", "Digest", "InboundQueueArn", "SourceKey"])


@pytest.mark.parametrize(("parse", "properties"), PARSERS)
@given(changes=st.dictionaries(PROPERTIES, JSON), before=JSON)
def test_every_input_is_either_understood_or_refused(
    parse: Any, properties: dict[str, str], changes: dict[str, Any], before: object
) -> None:
    event = an_event({**properties, **changes}, "Update", OldResourceProperties=before)
    try:
        parse(event)
    except InvalidRequest as refused:
        assert len(str(refused)) < 500  # noqa: PT017 - either is fine, but not at length


# Whatever is wrong with it, it is answered if it says where


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        "event",
        {},
        {"ResponseURL": None},
        *(
            an_event({}, ResponseURL=url)
            for url in (5, "", "nonsense", "file:///etc/passwd", "ftp://example.com/x", "http://[", "https://a b/")
        ),
        an_event({}, ResponseURL="https://example.com/\r\nX: y"),
        an_event({}, ResponseURL="https://example.com/\u00e9"),
    ],
)
def test_an_event_that_says_nowhere_to_answer_to_is_refused(event: object) -> None:
    with pytest.raises(InvalidRequest, match="ResponseURL"):
        answerable(event)
    with pytest.raises(InvalidRequest):
        parse_rollout_request(event)


@pytest.mark.parametrize(
    "url",
    [
        "https://user@cloudformation.example/?Signature=sesame",
        "ftp://x/?Signature=sesame",
        ["sesame"],
        "sesame" * 1_000,
    ],
    ids=["a user", "a scheme", "a list", "too long"],
)
def test_an_address_is_signed_so_no_error_tells_it(url: object) -> None:
    with pytest.raises(InvalidRequest, match="ResponseURL: the value is not valid") as refused:
        answerable(an_event({}, ResponseURL=url))
    assert "sesame" not in str(refused.value)


def test_an_event_that_can_be_answered_is_as_it_came() -> None:
    event = an_event(TENANT_QUEUE, PhysicalResourceId="acme", ResponseURL="http://127.0.0.1:60000/a?b=%2F")
    assert answerable(event) == event


@pytest.mark.parametrize("value", [None, 5, ["id"], {"id": "id"}, "\ud800", "i" * 1_001])
@pytest.mark.parametrize("name", ["RequestType", "StackId", "RequestId", "LogicalResourceId", "PhysicalResourceId"])
def test_an_id_that_is_none_is_left_out_of_the_answer_and_refused(name: str, value: object) -> None:
    event = an_event({"Version": "0.2.0"}, **{name: value})
    assert name not in answerable(event)
    with pytest.raises(InvalidRequest):
        parse_rollout_request(event)


@pytest.mark.parametrize("request_id", ["a request", "a/b", "a#b", "a\n", "r" * 65])
def test_a_request_that_no_execution_could_be_named_after_is_refused(request_id: str) -> None:
    with pytest.raises(InvalidRequest, match="RequestId"):
        parse_tenant_queue_request(an_event(TENANT_QUEUE, RequestId=request_id))


def test_an_event_that_is_too_large_for_the_machine_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="too large"):
        parse_claim(an_event(TENANT_QUEUE, OldResourceProperties={"TenantId": "a" * 200_000}), HERE)


# The claim of an event, before CloudFormation is asked


@pytest.mark.parametrize("kind", list(Kind))
def test_an_event_claims_to_be_a_resources(kind: Kind) -> None:
    event = an_event(TENANT_QUEUE, kind, PhysicalResourceId="acme")
    assert parse_claim(event, HERE) == Claim(kind, RESOURCE, "a-request", "acme", "acme")


@pytest.mark.parametrize("properties", [{}, {"TenantId": 5}, {"TenantId": ["acme"]}])
def test_it_may_name_no_tenant(properties: dict[str, object]) -> None:
    assert parse_claim(an_event(properties), HERE) == Claim(Kind.CREATE, RESOURCE, "a-request", None, None)


@pytest.mark.parametrize(
    "stack_id",
    [
        "billing",
        f"{STACK}/Queue",
        f"{STACK}\n",
        f"x{STACK}",
        STACK.replace("eu-west-1", "eu-west-2"),
        STACK.replace("000000000000", "000000000001"),
        STACK.replace("arn:aws:", "arn:aws-cn:"),
        STACK.replace(":stack/", ":changeSet/"),
    ],
)
def test_only_a_stack_of_this_partition_account_and_region_may_ask(stack_id: str) -> None:
    with pytest.raises(InvalidRequest, match="StackId"):
        parse_claim(an_event(TENANT_QUEUE, StackId=stack_id), HERE)


@pytest.mark.parametrize("logical_id", ["1/Queue", "Queue\n", "Qu-eue", "q" * 256])
def test_only_a_resource_may_ask(logical_id: str) -> None:
    with pytest.raises(InvalidRequest, match="LogicalResourceId"):
        parse_claim(an_event(TENANT_QUEUE, LogicalResourceId=logical_id), HERE)


@pytest.mark.parametrize("missing", ["RequestType", "StackId", "RequestId", "LogicalResourceId", "ResourceProperties"])
def test_an_event_that_claims_nothing_is_refused(missing: str) -> None:
    event = an_event(TENANT_QUEUE)
    del event[missing]
    with pytest.raises(InvalidRequest, match=missing):
        parse_claim(event, HERE)


def test_every_requester_has_a_name_that_the_machines_accept() -> None:
    stack = f"arn:aws-iso-b:cloudformation:us-isob-east-1:000000000000:stack/{'s' * 128}/{'a' * 36}"
    longest = an_event(TENANT_QUEUE, StackId=stack, LogicalResourceId="l" * 255)
    assert len(parse_tenant_queue_request(longest).request.by) <= 2_048
