"""With the deployed permissions, events are configured, accepted and read, and no request is denied."""

from __future__ import annotations

import hmac
import json
import random
from typing import Any

import pytest

from orchestrator.adapters.dynamodb.keys import metadata_key
from orchestrator.common.tenant_ids import TenantId
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.enforced.test_denied import denied, table_of
from tests.e2e.events_api import EventsApi
from tests.e2e.operators import call

SECRET = "It's a Secret to Everybody"
LARGE = random.Random(1).randbytes(10_000).hex()
"""Too large for a row, even compressed."""


def test_no_request_is_denied_from_the_first_setting_to_the_acknowledgement(enforced: Enforced) -> None:
    tenant = TenantId("enforced-events")
    assert enforced.platform.settled(tenant).status == 200
    before = len(enforced.decisions())
    operator = EventsApi(enforced.event_operator, tenant)

    def tell(method: str, path: str, document: object = None, *, key: str) -> tuple[int, Any]:
        body = b"" if document is None else json.dumps(document).encode()
        status, _, answer = operator.send_unsigned(method, path, body, Content_Type="application/json", X_Api_Key=key)
        return status, answer

    # An operator configures the tenant, and the tenant itself goes on with its key.
    operator.operate("PUT", "/settings", {"plan": "pro", "inbox": True, "type_index": True})
    key = operator.operate("POST", "/keys", {"name": "all", "scopes": ["admin"]})["key"]
    status, source = tell("POST", "/sources", {"name": "code", "provider": "github", "secret": SECRET}, key=key)
    assert status == 201, source
    status, form = tell("POST", "/forms", {"name": "contact"}, key=key)
    assert status == 201, form

    # Events come in by key, as a webhook and as a form; one is stored in S3.
    small = tell("POST", "/events", {"event_type": "order.created", "payload": {"order": 1}}, key=key)
    large = tell("POST", "/events", {"event_type": "order.created", "payload": {"text": LARGE}}, key=key)
    assert (small[0], large[0]) == (202, 202)
    body = b'{"zen": "Keep it logically awesome."}'
    signature = f"sha256={hmac.digest(SECRET.encode(), body, 'sha256').hex()}"
    status, _, answer = operator.send_unsigned(
        "POST",
        f"/hooks/{source['source_id']}",
        body,
        Content_Type="application/json",
        X_Hub_Signature_256=signature,
        X_GitHub_Delivery="1",
        X_GitHub_Event="push",
    )
    assert status == 200, answer
    html = "application/x-www-form-urlencoded"
    status, _, answer = operator.send_unsigned("POST", f"/forms/{form['form_id']}", b"name=Ada", Content_Type=html)
    assert status == 202, answer

    # The tenant and the operator read them, and the tenant acknowledges one.
    assert len(tell("GET", "/events", key=key)[1]["events"]) == 3
    assert len(tell("GET", f"/events?form_id={form['form_id']}", key=key)[1]["events"]) == 1
    assert len(tell("GET", "/events?event_type=order.created", key=key)[1]["events"]) == 2
    assert operator.send("GET", f"/tenants/{tenant}/inbox")[2]["events"]
    assert tell("GET", f"/events/{large[1]['event_id']}", key=key)[1]["payload"] == {"text": LARGE}
    status, answer = tell("POST", "/inbox/ack", {"event_ids": [small[1]["event_id"]]}, key=key)
    assert status == 200, answer
    assert tell("DELETE", f"/forms/{form['form_id']}", key=key)[0] == 200
    assert tell("GET", "/changes", key=key)[1]["changes"][0]["kind"] == "form-deleted"

    assert enforced.denials() == []
    used = {(each.principal.split("/")[1].split("-")[1], each.action) for each in enforced.decisions()[before:]}
    assert {action for role, action in used if role.startswith("ApiIngest")} == {
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "s3:PutObject",
    }

    # The control plane asks for unfinished events before it deletes the tenant.
    refused = call(enforced.operator, "DELETE", f"/tenants/{tenant}")
    assert (refused.status, refused.body["type"]) == (409, "urn:berth:problem:queue-not-empty")
    assert enforced.denials() == []


def test_no_request_is_denied_when_a_tenant_and_an_operator_configure_connections(enforced: Enforced) -> None:
    tenant = TenantId("enforced-connections")
    assert enforced.platform.settled(tenant).status == 200
    api = EventsApi(enforced.event_operator, tenant)
    api.operate("PUT", "/settings", {"plan": "pro"})
    key = api.operate("POST", "/keys", {"name": "all", "scopes": ["admin"]})["key"]

    def by_key(method: str, path: str, document: object = None) -> Any:
        body = b"" if document is None else json.dumps(document).encode()
        status, _, answer = api.send_unsigned(method, path, body, Content_Type="application/json", X_Api_Key=key)
        assert status < 300, answer
        return answer

    for ask in (by_key, api.operate):
        source = ask("POST", "/sources", {"name": "code", "provider": "github"})["source_id"]
        webhook = {"name": "shop", "destination": "webhook", "address": "https://shop.example/hooks", "origin": source}
        connection_id = ask("POST", "/connections", webhook)["connection_id"]
        queue = ask("POST", "/connections", {"name": "queue"})["connection_id"]
        assert {connection_id, queue} <= {each["connection_id"] for each in ask("GET", "/connections")["connections"]}
        ask("PUT", f"/connections/{connection_id}", {"filter": {"event_type": "push"}})
        for order in ("pause", "resume", "rotate"):
            ask("POST", f"/connections/{connection_id}/{order}", {})
        assert ask("POST", f"/connections/{queue}/test", {})["event_id"]
        zap = ask("POST", "/zapier/hooks", {"hookUrl": "https://hooks.zapier.com/hooks/1/", "event_type": "push"})
        assert ask("GET", "/zapier/sample?event_type=push")["samples"]
        ask("DELETE", f"/zapier/hooks/{zap['id']}")
        for each in (connection_id, queue):
            ask("DELETE", f"/connections/{each}")
        ask("DELETE", f"/sources/{source}")
    assert enforced.denials() == []


@pytest.mark.parametrize("name", ["ingest", "receive", "tenant_events"])
def test_a_function_that_faces_the_internet_sees_of_a_tenant_only_whether_it_lives(
    enforced: Enforced, name: str
) -> None:
    tenant = TenantId("enforced-life")
    assert enforced.platform.settled(tenant).status == 200
    dynamodb, table = table_of(enforced.function(name))
    row = {"TableName": table, "Key": metadata_key(tenant)}
    assert set(dynamodb.get_item(**row, ProjectionExpression="CreatedAt, WithdrawnBy")["Item"]) == {"CreatedAt"}
    assert denied(dynamodb.get_item, **row)
    assert denied(dynamodb.get_item, **row, ProjectionExpression="CreatedAt, InboundQueueUrl")
    assert denied(dynamodb.update_item, **row)
    assert denied(dynamodb.delete_item, **row)
    of_tenant = {":pk": row["Key"]["pk"]}
    request = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": of_tenant}
    assert denied(dynamodb.query, TableName=table, **request, ProjectionExpression="CreatedAt")


def test_credentials_for_events_read_one_tenants_events_and_nothing_else(enforced: Enforced) -> None:
    mine, other = TenantId("enforced-mine"), TenantId("enforced-other")
    issued = {}
    for tenant in (mine, other):
        assert enforced.platform.settled(tenant).status == 200
        operator = EventsApi(enforced.event_operator, tenant)
        operator.operate("PUT", "/settings", {"plan": "free"})
        key = operator.operate("POST", "/keys", {"name": "all", "scopes": ["write"]})["key"]
        event = json.dumps({"event_type": "order.created", "payload": {}}).encode()
        status, _, answer = operator.send_unsigned(
            "POST", "/events", event, Content_Type="application/json", X_Api_Key=key
        )
        assert status == 202, answer
        issued[tenant] = {**operator.operate("POST", "/events/credentials", {}), "event_id": answer["event_id"]}
    reader, table = enforced.with_event_credentials(issued[mine]), issued[mine]["table"]

    def of(partition: str) -> dict[str, Any]:
        values = {":pk": {"S": partition}}
        return {"TableName": table, "KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": values}

    (own,) = issued[mine]["partitions"]
    (row,) = reader.query(**of(own))["Items"]
    assert row["sk"]["S"].endswith(issued[mine]["event_id"])
    key = {"pk": row["pk"], "sk": row["sk"]}
    assert reader.get_item(TableName=table, Key=key)["Item"] == row
    assert reader.batch_get_item(RequestItems={table: {"Keys": [key]}})["Responses"][table] == [row]
    assert denied(reader.query, **of(issued[other]["partitions"][0]))
    assert denied(reader.scan, TableName=table)
    assert denied(reader.delete_item, TableName=table, Key=key)
    assert denied(reader.put_item, TableName=table, Item=row)
    assert enforced.denials() == []
