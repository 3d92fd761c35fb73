"""With the deployed permissions, events are dispatched, delivered, parked, swept and recovered. Nothing is denied."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from orchestrator.adapters.delivery_queues import to_wire
from orchestrator.adapters.dynamodb.keys import metadata_key
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.records import DeliveryRef
from orchestrator.events.statuses import EventStatus
from tests.e2e.deliveries import Delivering, messages_come_again_soon
from tests.e2e.deployed import eventually
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.enforced.test_denied import denied, table_of
from tests.e2e.enforced.test_life_of_an_event import LARGE
from tests.fakes.receivers import Receiver, answers

TENANT = TenantId("enforced-delivery")


def test_no_request_is_denied_from_the_connection_to_the_recovery_of_a_lost_message(enforced: Enforced) -> None:
    assert enforced.platform.settled(TENANT).status == 200
    tenant = Delivering(enforced.root, TENANT, operator=enforced.event_operator)
    with Receiver(answers(500), answers(200)) as receiver:
        # The content of the event is in S3, where dispatch looks at it for the filter, and the deliverer takes it from.
        only_large = {"payload": {"text": {"$exist": True}}}
        queue = tenant.connect("own queue", filter=only_large)
        hook = tenant.connect("hook", destination="webhook", address=receiver.url, retry_seconds=[1])
        assert tenant.ended(tenant.send({"text": LARGE})).event.status is EventStatus.DELIVERED

        # The sweep sends what was parked.
        tenant.change(hook, "pause")
        parked = tenant.send({"order": 1})
        eventually(lambda: tenant.table.parked(hook["connection_id"], 10) or None, what="it is parked", pause=0.5)
        tenant.change(hook, "resume")
        assert tenant.ended(parked).event.status is EventStatus.DELIVERED

        # A lost message is recovered, and an event that was not dispatched is dispatched again.
        with messages_come_again_soon(enforced.root, tenant.api):
            with enforced.root.held_up("deliver_events"):
                lost = tenant.send({"order": 2})
                ref = DeliveryRef(tenant.life, lost, hook["connection_id"])
                _recover(enforced, DeliveryMessage(ref))
                assert tenant.table.delivery(ref) is not None
                not_dispatched = tenant.send({"order": 3})
                _redispatch(enforced)
                assert tenant.table.delivery(replace(ref, event_id=not_dispatched)) is not None
            assert tenant.ended(lost).event.status is EventStatus.DELIVERED
            assert tenant.ended(not_dispatched).event.status is EventStatus.DELIVERED
        tenant.disconnect(queue, hook)
    assert enforced.denials() == []


def _recover(enforced: Enforced, message: DeliveryMessage) -> None:
    event = {"Records": [{"messageId": "1", "body": to_wire(message)}]}
    answer = enforced.root.invoke(enforced.root.function("recover_deliveries"), event)
    assert answer == {"batchItemFailures": []}


def _redispatch(enforced: Enforced) -> None:
    now = datetime.now(UTC).isoformat()
    batch = {f"approximateArrivalOf{which}Record": now for which in ("First", "Last")}
    event = {"Records": [{"messageId": "1", "body": json.dumps({"DDBStreamBatchInfo": batch})}]}
    answer = enforced.root.invoke(enforced.root.function("redispatch_events"), event)
    assert answer == {"batchItemFailures": []}


def test_a_deliverer_sees_of_a_tenant_only_whether_it_lives_and_where_its_queue_is(enforced: Enforced) -> None:
    assert enforced.platform.settled(TENANT).status == 200
    dynamodb, table = table_of(enforced.function("deliver_events"))
    row = {"TableName": table, "Key": metadata_key(TENANT)}
    found = dynamodb.get_item(**row, ProjectionExpression="CreatedAt, WithdrawnBy, InboundQueueUrl")["Item"]
    assert set(found) == {"CreatedAt", "InboundQueueUrl"}
    assert denied(dynamodb.get_item, **row)
    assert denied(dynamodb.get_item, **row, ProjectionExpression="CreatedAt, StackId")
    assert denied(dynamodb.update_item, **row)
    assert denied(dynamodb.delete_item, **row)


def test_a_deliverer_sends_to_tenants_queues_and_receives_from_none(enforced: Enforced) -> None:
    url = enforced.platform.ask(TENANT).body["queueUrl"]
    sqs = enforced.function("deliver_events").client("sqs")
    assert denied(sqs.receive_message, QueueUrl=url)
    assert denied(sqs.purge_queue, QueueUrl=url)
    assert denied(sqs.delete_queue, QueueUrl=url)
