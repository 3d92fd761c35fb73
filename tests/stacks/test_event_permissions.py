"""The permissions of the event plane: of its functions, and of the policies for its routes."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest

from orchestrator.adapters.dynamodb import delivery_keys, event_keys
from orchestrator.adapters.dynamodb.event_keys import (
    LISTED_CARE,
    LISTED_DISABLED,
    LISTED_FINISHED_PURGES,
    LISTED_PURGES,
    LISTED_SETTINGS,
)
from orchestrator.adapters.dynamodb.event_tenants import DynamoTenants
from orchestrator.adapters.dynamodb.keys import tenant_pk
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.records import TenantEpoch
from stacks.events.rows import (
    CHANGE_ROWS,
    CONFIGURATION_ROWS,
    CONNECTION_ROWS,
    DELIVERY_ROWS,
    DUE_INDEX_ROWS,
    EVENT_ROWS,
    FORM_ROWS,
    KEY_ROWS,
    LIFE_ATTRIBUTES,
    LIFE_ROWS,
    PARKED_INDEX_ROWS,
    QUEUE_ATTRIBUTES,
    REPETITION_ROWS,
    REPLAY_INDEX_ROWS,
    REPLAY_ROWS,
    SOURCE_ROWS,
)
from tests.stacks.event_plane import Json, of_events, of_tenants
from tests.stacks.policies import Grants, documents, grants, listed, spelled, statements
from tests.stacks.test_permissions import EVERY_FUNCTION

# Policies

CONFIGURATION = [CONFIGURATION_ROWS, KEY_ROWS, SOURCE_ROWS, FORM_ROWS]


LISTED = f"the tenants' index, rows {LISTED_SETTINGS} and {LISTED_PURGES}"

SEES_WHETHER_TENANTS_LIVE: Grants = {
    "the tenants' table, rows TENANT_ID#*, only pk, sk, CreatedAt, WithdrawnBy": {"dynamodb:GetItem"}
}
CHECKS_KEYS: Grants = {
    of_tenants(KEY_ROWS, CONFIGURATION_ROWS): {"dynamodb:GetItem"},
    of_tenants(LIFE_ROWS): {"dynamodb:UpdateItem"},
    **SEES_WHETHER_TENANTS_LIVE,
}
ACCEPTS_EVENTS: Grants = {
    of_events(EVENT_ROWS, REPETITION_ROWS): {"dynamodb:PutItem"},
    of_events(REPETITION_ROWS): {"dynamodb:GetItem"},
    "contents": {"s3:PutObject"},
}
READS_AND_CONFIGURES: Grants = {
    of_tenants(*CONFIGURATION): {
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
    },
    "the key for secrets, for a tenant's epoch": {"kms:Encrypt"},
    of_events(EVENT_ROWS): {
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
    },
    of_events(CHANGE_ROWS): {"dynamodb:PutItem", "dynamodb:Query"},
    of_events(DELIVERY_ROWS): {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem"},
    of_events(REPLAY_ROWS): {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem"},
    "other tries": {"sqs:SendMessage"},
    "the index by status": {"dynamodb:Query"},
    "the index by type": {"dynamodb:Query"},
    "contents": {"s3:GetObject"},
    "the bucket of contents": {"s3:ListBucket"},
}
RECEIVES = {
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
}
"""The actions with which Lambda polls a queue."""
SENDS_MESSAGES: Grants = {"first tries": {"sqs:SendMessage"}, "other tries": {"sqs:SendMessage"}}
READS_CONTENTS: Grants = {"contents": {"s3:GetObject"}, "the bucket of contents": {"s3:ListBucket"}}
DISPATCHES_EVENTS: Grants = {
    of_tenants(*CONNECTION_ROWS): {"dynamodb:Query"},
    of_events(EVENT_ROWS, DELIVERY_ROWS): {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
    **SENDS_MESSAGES,
    **READS_CONTENTS,
}
CHANGES_DELIVERIES: Grants = {
    of_events(EVENT_ROWS, DELIVERY_ROWS): {
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
    },
}
CHANGES_CONNECTIONS: Grants = {
    of_tenants(*CONNECTION_ROWS): {"dynamodb:GetItem", "dynamodb:UpdateItem"},
    of_events(CHANGE_ROWS): {"dynamodb:PutItem"},
}
FUNCTIONS: dict[str, Grants] = {
    "ingest": {**CHECKS_KEYS, **ACCEPTS_EVENTS},
    "receive": {
        of_tenants(SOURCE_ROWS, FORM_ROWS, CONFIGURATION_ROWS): {"dynamodb:GetItem"},
        **SEES_WHETHER_TENANTS_LIVE,
        "the key for secrets, for a tenant's epoch": {"kms:Decrypt"},
        **ACCEPTS_EVENTS,
    },
    "tenant_events": {**CHECKS_KEYS, **READS_AND_CONFIGURES},
    "event_operators": {
        **READS_AND_CONFIGURES,
        **SEES_WHETHER_TENANTS_LIVE,
        f"{LISTED} and {LISTED_FINISHED_PURGES} and {LISTED_CARE} and {LISTED_DISABLED}": {"dynamodb:Query"},
        "dead letters: events that were not counted": {"sqs:GetQueueAttributes"},
        "dead letters: counts for bills": {"sqs:GetQueueAttributes"},
        "dead letters: searches for deleted tenants": {"sqs:GetQueueAttributes"},
        "dead letters: Berth's own events": {"sqs:GetQueueAttributes"},
        "dead letters: deliveries that could not be recovered": {"sqs:GetQueueAttributes"},
        "dead letters: redispatches of events": {"sqs:GetQueueAttributes"},
    },
    "count_usage": {
        of_tenants(CONFIGURATION_ROWS): {"dynamodb:BatchGetItem"},
        of_tenants(LIFE_ROWS): {"dynamodb:UpdateItem"},
        "the events' stream": {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
        "*": EVERY_FUNCTION["*"] | {"dynamodb:ListStreams"},
        "the function publish_events": {"lambda:InvokeFunction"},
        "dead letters: events that were not counted": {
            "sqs:SendMessage",
            "sqs:GetQueueAttributes",
            "sqs:GetQueueUrl",
        },
    },
    "bill_usage": {
        of_tenants(CONFIGURATION_ROWS): {"dynamodb:BatchGetItem"},
        of_tenants(LIFE_ROWS): {"dynamodb:UpdateItem"},
        "the tenants' index, rows EVENTS#SETTINGS": {"dynamodb:Query"},
        f"{of_events(EVENT_ROWS)}, to count them": {"dynamodb:Query"},
        "dead letters: counts for bills": {"sqs:SendMessage"},
    },
    "dispatch_events": {
        **DISPATCHES_EVENTS,
        "the events' stream": {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
        "*": EVERY_FUNCTION["*"] | {"dynamodb:ListStreams"},
        "batches of the stream": {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"},
    },
    "deliver_events": {
        **CHANGES_DELIVERIES,
        **CHANGES_CONNECTIONS,
        **SENDS_MESSAGES,
        **READS_CONTENTS,
        "first tries": RECEIVES | {"sqs:SendMessage"},
        "other tries": RECEIVES | {"sqs:SendMessage"},
        of_tenants(CONFIGURATION_ROWS): {"dynamodb:GetItem"},
        "the tenants' table, rows TENANT_ID#*, only pk, sk, CreatedAt, WithdrawnBy, InboundQueueUrl": {
            "dynamodb:GetItem"
        },
        "tenant queues": {"sqs:SendMessage"},
        "the key for secrets, for a tenant's epoch": {"kms:Decrypt"},
    },
    "sweep_deliveries": {
        **DISPATCHES_EVENTS,
        **CHANGES_DELIVERIES,
        of_events(DELIVERY_ROWS): {"dynamodb:BatchGetItem"},
        **CHANGES_CONNECTIONS,
        of_tenants(*CONNECTION_ROWS): {
            "dynamodb:Query",
            "dynamodb:GetItem",
            "dynamodb:UpdateItem",
            "dynamodb:BatchGetItem",
        },
        of_tenants(*CONNECTION_ROWS, LIFE_ROWS): {"dynamodb:DeleteItem"},
        f"the tenants' index, rows {LISTED_CARE}": {"dynamodb:Query"},
        f"the index by status, rows {DUE_INDEX_ROWS} and {PARKED_INDEX_ROWS} and {REPLAY_INDEX_ROWS}": {
            "dynamodb:Query"
        },
        of_events(EVENT_ROWS): {"dynamodb:Query"},
        of_events(REPLAY_ROWS): {"dynamodb:BatchGetItem", "dynamodb:PutItem"},
    },
    "recover_deliveries": {**CHANGES_DELIVERIES, "lost messages": RECEIVES},
    "redispatch_events": {
        **DISPATCHES_EVENTS,
        of_events(EVENT_ROWS): {"dynamodb:Query"},
        f"the tenants' index, rows {LISTED_SETTINGS}": {"dynamodb:Query"},
        "batches of the stream": RECEIVES,
        "dead letters: redispatches of events": {"sqs:SendMessage"},
    },
    "purge_events": {
        of_tenants(*CONFIGURATION): {
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
        },
        of_events(EVENT_ROWS, DELIVERY_ROWS, CHANGE_ROWS, REPLAY_ROWS): {
            "dynamodb:Query",
            "dynamodb:BatchWriteItem",
        },
        "contents": {"s3:DeleteObject"},
        "the bucket of contents": {"s3:ListBucket"},
    },
    "find_purges": {
        of_tenants(CONFIGURATION_ROWS): {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"},
        **SEES_WHETHER_TENANTS_LIVE,
        LISTED: {"dynamodb:Query"},
        "the machine purge_events": {"states:StartExecution"},
        "dead letters: searches for deleted tenants": {"sqs:SendMessage"},
    },
    "unfinished_work": {
        of_tenants(CONFIGURATION_ROWS): {"dynamodb:GetItem", "dynamodb:Query"},
        **SEES_WHETHER_TENANTS_LIVE,
        "the index by status": {"dynamodb:Query"},
        of_events(EVENT_ROWS): {"dynamodb:GetItem", "dynamodb:BatchGetItem"},
    },
    "publish_events": {
        "the tenants' stream": {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
        "*": EVERY_FUNCTION["*"] | {"dynamodb:ListStreams"},
        "the bus of Berth's own events": {"events:PutEvents"},
        "dead letters: Berth's own events": {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"},
    },
    "api_proof": {
        "the stack itself": {"cloudformation:DescribeStackResource", "cloudformation:DescribeStacks"},
        "the API's stage": {"apigateway:GET"},
    },
}


def test_every_function_is_in_the_table(event_function_ids: dict[str, str]) -> None:
    assert set(event_function_ids) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_exactly_these_permissions(
    event_plane: Json, event_function_ids: dict[str, str], event_names: dict[str, str], name: str
) -> None:
    function = event_plane["Resources"][event_function_ids[name]]["Properties"]
    own_log_group = {f"<{function['LoggingConfig']['LogGroup']['Ref']}.Arn>": "its own log group"}
    role = function["Role"]["Fn::GetAtt"][0]
    assert grants(event_plane, role, event_names | own_log_group) == EVERY_FUNCTION | FUNCTIONS[name]


def test_functions_do_not_share_roles(event_plane: Json, event_function_ids: dict[str, str]) -> None:
    roles = {spelled(event_plane["Resources"][each]["Properties"]["Role"]) for each in event_function_ids.values()}
    assert len(roles) == len(event_function_ids)


@pytest.mark.parametrize("name", ["ingest", "receive"])
def test_a_function_that_takes_events_can_neither_read_nor_change_nor_delete_one(name: str) -> None:
    of_table = {label: actions for label, actions in FUNCTIONS[name].items() if "the events' table" in label}
    assert of_table == {
        of_events(EVENT_ROWS, REPETITION_ROWS): {"dynamodb:PutItem"},
        of_events(REPETITION_ROWS): {"dynamodb:GetItem"},
    }
    assert FUNCTIONS[name]["contents"] == {"s3:PutObject"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_of_the_event_plane_may_change_a_tenant_or_read_more_of_it_than_its_life(
    event_plane: Json, event_function_ids: dict[str, str], name: str
) -> None:
    """Except for the stream, which cannot be limited to rows: one function reads it, through a filter."""
    role = event_plane["Resources"][event_function_ids[name]]["Properties"]["Role"]["Fn::GetAtt"][0]
    tenant = tenant_pk(TenantId.parse("acme"))
    for holder, statement in statements(event_plane):
        rows = statement.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys")
        if holder != role or "TenantsTable" not in spelled(statement["Resource"]):
            continue
        if "StreamArn" in spelled(statement["Resource"]):
            assert name == "publish_events"
            continue
        assert rows, "every permission on the tenants' table is limited to some rows"
        if any(fnmatchcase(tenant, row) for row in rows):
            assert listed(statement["Action"]) == ["dynamodb:GetItem"]
            attributes = statement["Condition"]["ForAllValues:StringEquals"]["dynamodb:Attributes"]
            # Only the function that sends to tenants' queues also sees where they are.
            allowed = QUEUE_ATTRIBUTES if name == "deliver_events" else LIFE_ATTRIBUTES
            assert set(attributes) == {"pk", "sk", *allowed}


def test_the_life_of_a_tenant_is_read_with_the_attributes_that_the_policy_allows() -> None:
    asked: dict[str, Any] = {}

    class Recorder:
        def get_item(self, **given: Any) -> Json:
            asked.update(given)
            return {}

    client: Any = Recorder()
    DynamoTenants(client, "table").incarnation(TenantId.parse("acme"))
    assert {each.strip() for each in asked["ProjectionExpression"].split(",")} == set(LIFE_ATTRIBUTES)


def test_each_pattern_of_rows_matches_exactly_the_keys_of_its_rows() -> None:
    life = TenantEpoch(TenantId.parse("acme"), "e1")
    in_tenants_table = {
        CONFIGURATION_ROWS: event_keys.configuration_pk(life),
        KEY_ROWS: event_keys.api_key_key("d" * 64)["pk"]["S"],
        SOURCE_ROWS: event_keys.source_key("src_1")["pk"]["S"],
        FORM_ROWS: event_keys.form_key("frm_1")["pk"]["S"],
        "TENANT_ID#*": tenant_pk(life.tenant),
    }
    in_events_table = {
        EVENT_ROWS: event_keys.shard_pk(life, 0),
        REPETITION_ROWS: event_keys.idempotency_key(life, "api", "k")["pk"]["S"],
        DELIVERY_ROWS: delivery_keys.deliveries_pk(life, "1"),
        CHANGE_ROWS: event_keys.changes_pk(life),
    }
    for partitions in (in_tenants_table, in_events_table):
        for rows, own in partitions.items():
            assert [pk for pk in partitions.values() if fnmatchcase(pk, rows)] == [own]
    assert fnmatchcase(event_keys.settings_key(life.tenant)["pk"]["S"], CONFIGURATION_ROWS)
    assert fnmatchcase(event_keys.configuration_pk(life), LIFE_ROWS)
    assert not fnmatchcase(event_keys.settings_key(life.tenant)["pk"]["S"], LIFE_ROWS)


@pytest.mark.parametrize("name", ["ingest", "receive", "count_usage", "bill_usage", "sweep_deliveries"])
def test_a_function_that_notes_something_cannot_change_the_settings_of_a_tenant(
    event_plane: Json, event_function_ids: dict[str, str], name: str
) -> None:
    """The settings have the tenant's plan, and the epoch by which its keys are valid."""
    role = event_plane["Resources"][event_function_ids[name]]["Properties"]["Role"]["Fn::GetAtt"][0]
    settings = event_keys.settings_key(TenantId.parse("acme"))["pk"]["S"]
    for holder, statement in statements(event_plane):
        rows = statement.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys", [])
        if holder == role and any(fnmatchcase(settings, each) for each in rows):
            assert set(listed(statement["Action"])) <= {"dynamodb:GetItem", "dynamodb:BatchGetItem"}


def test_no_policy_allows_a_scan(event_plane: Json) -> None:
    assert not [each for _, each in documents(event_plane) if "dynamodb:Scan" in listed(each["Action"])]
