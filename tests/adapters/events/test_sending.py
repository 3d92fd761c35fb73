"""Tries with tenants' queues, SES, KMS and S3 in process."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from orchestrator.adapters import event_ports, kms
from orchestrator.adapters.dynamodb.event_tenant_queues import DynamoTenantQueues
from orchestrator.adapters.event_ports import AwsEventPorts
from orchestrator.adapters.kms import KmsSecrets
from orchestrator.adapters.queue_messages import SqsQueueMessages
from orchestrator.adapters.ses import SesMails
from orchestrator.adapters.settings import Settings
from orchestrator.common.errors import QueueOutOfReach, Throttled
from orchestrator.event_composition import EventUseCases
from orchestrator.events.content import pack
from orchestrator.events.delivery.answers import Failure
from orchestrator.events.delivery.mail import Mail
from orchestrator.events.delivery.queue_message import QueueMessage
from orchestrator.events.delivery.records import DestinationKind, Verdict
from orchestrator.events.delivery.sending import Sending
from orchestrator.events.delivery.signing import new_signing_secret, secret_context, signature_headers
from orchestrator.events.records import Content
from orchestrator.tenants.records import Operation
from tests.adapters.conftest import TABLE, client
from tests.adapters.events.lives import BUCKET, EVENTS_TABLE
from tests.adapters.tables import LATER, WholeTable, a_run, create, take
from tests.fakes import ACME, NOON, QUEUE
from tests.fakes.events import ACME_LIFE, event_settings
from tests.fakes.receivers import Receiver
from tests.fakes.sending import CONNECTION_ID, EVENT_ID, a_connection, an_event, outgoing
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

MESSAGE = QueueMessage('{"a": "\u00e4"}', {"webhook-id": "evt-con", "berth-hops": "1"})
MAIL = Mail("ada@example.com", "order.created (acme)", "Text.\n", {"webhook-id": "evt-con"})


class TestTenantQueues:
    def test_a_tenant_in_service_has_its_queue(self, dynamodb: DynamoDBClient) -> None:
        create(WholeTable(dynamodb, TABLE))
        queue = present(DynamoTenantQueues(dynamodb, TABLE).served_queue(ACME))
        assert queue.url == QUEUE.url
        ports = AwsEventPorts(Settings({"BERTH_TABLE": TABLE}))
        ports._dynamodb = dynamodb
        assert queue.incarnation == ports.tenants.incarnation(ACME)

    def test_a_tenant_that_was_never_created_has_none(self, dynamodb: DynamoDBClient) -> None:
        assert DynamoTenantQueues(dynamodb, TABLE).served_queue(ACME) is None

    def test_a_tenant_that_is_being_deleted_has_none(self, dynamodb: DynamoDBClient) -> None:
        table = WholeTable(dynamodb, TABLE)
        create(table)
        take(table, a_run(operation=Operation.DELETE, started_at=LATER))
        assert DynamoTenantQueues(dynamodb, TABLE).served_queue(ACME) is None

    def test_a_tenant_whose_queue_is_gone_has_none(self, dynamodb: DynamoDBClient) -> None:
        table = WholeTable(dynamodb, TABLE)
        create(table)
        table.forget_queue(ACME, stack_id="stack-1")
        assert DynamoTenantQueues(dynamodb, TABLE).served_queue(ACME) is None


@pytest.mark.usefixtures("aws")
class TestQueueMessages:
    def test_a_message_arrives_with_its_attributes(self) -> None:
        sqs = client("sqs")
        url = sqs.create_queue(QueueName="acme-inbound")["QueueUrl"]
        assert SqsQueueMessages(lambda: sqs).send(url, MESSAGE) is None
        (message,) = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
        assert message["Body"] == MESSAGE.body
        attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
        assert attributes == MESSAGE.attributes

    def test_a_queue_that_does_not_exist_is_a_failure(self) -> None:
        messages = SqsQueueMessages(lambda: client("sqs"))
        url = "https://sqs.eu-west-1.amazonaws.com/123456789012/gone"
        assert messages.send(url, MESSAGE) == Failure("The tenant's queue does not exist. It may be being replaced.")

    def test_a_message_that_is_too_large_for_the_queue_is_a_failure(self) -> None:
        """The template of an operator may give the queue any limit."""
        sqs = client("sqs")
        url = sqs.create_queue(QueueName="acme-small", Attributes={"MaximumMessageSize": "1024"})["QueueUrl"]
        result = SqsQueueMessages(lambda: sqs).send(url, replace(MESSAGE, body="a" * 2_000))
        assert result == Failure("SQS refused the message. It may be larger than the queue's MaximumMessageSize.")


class TestSqsErrors:
    def send(self, sqs: Stubber, code: str) -> Failure | None:
        sqs.add_client_error("send_message", code, "arn:aws:iam::123456789012:role/secret")
        return SqsQueueMessages(lambda: client("sqs")).send(QUEUE.url, MESSAGE)

    @pytest.mark.parametrize("code", ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"])
    def test_no_such_queue(self, sqs: Stubber, code: str) -> None:
        assert isinstance(self.send(sqs, code), Failure)

    def test_a_missing_permission_is_ours(self, sqs: Stubber) -> None:
        with pytest.raises(QueueOutOfReach, match="no permission to send to queue"):
            self.send(sqs, "AccessDenied")

    def test_throttling_is_ours(self, sqs: Stubber) -> None:
        with pytest.raises(Throttled):
            self.send(sqs, "RequestThrottled")

    def test_any_other_error_is_ours(self, sqs: Stubber) -> None:
        with pytest.raises(ClientError):
            self.send(sqs, "KmsDisabled")


class TestMails:
    @pytest.fixture
    def ses(self) -> Iterator[Stubber]:
        with Stubber(client("sesv2")) as stubber:
            yield stubber
            stubber.assert_no_pending_responses()

    def mails(self, sender: str | None = "berth@example.com", configuration_set: str | None = None) -> SesMails:
        return SesMails(lambda: client("sesv2"), sender, configuration_set=configuration_set)

    def test_ses_takes_a_mail(self, ses: Stubber) -> None:
        expected = {
            "FromEmailAddress": "berth@example.com",
            "Destination": {"ToAddresses": ["ada@example.com"]},
            "Content": {
                "Simple": {
                    "Subject": {"Data": "order.created (acme)", "Charset": "UTF-8"},
                    "Body": {"Text": {"Data": "Text.\n", "Charset": "UTF-8"}},
                    "Headers": [{"Name": "webhook-id", "Value": "evt-con"}],
                }
            },
        }
        ses.add_response("send_email", {"MessageId": "1"}, expected)
        assert self.mails().send(MAIL) is None

    def test_a_mail_with_a_configuration_set_has_tags_that_lead_back_to_its_connection(self, ses: Stubber) -> None:
        tags = [{"Name": "tenant", "Value": "acme"}, {"Name": "connection", "Value": "conn_1"}]
        expected = {
            "FromEmailAddress": "berth@example.com",
            "Destination": {"ToAddresses": ["ada@example.com"]},
            "Content": ANY,
            "ConfigurationSetName": "BerthEvents",
            "EmailTags": tags,
        }
        ses.add_response("send_email", {"MessageId": "1"}, expected)
        tagged = replace(MAIL, tags={each["Name"]: each["Value"] for each in tags})
        assert self.mails(configuration_set="BerthEvents").send(tagged) is None

    @pytest.mark.usefixtures("aws")
    def test_ses_in_process_takes_it_too(self) -> None:
        client("ses").verify_email_identity(EmailAddress="berth@example.com")
        assert self.mails().send(MAIL) is None
        assert client("ses").get_send_quota()["SentLast24Hours"] == 1

    @pytest.mark.parametrize(
        ("code", "slows"),
        [
            ("TooManyRequestsException", True),
            ("LimitExceededException", True),
            ("MessageRejected", False),
            ("BadRequestException", False),
            ("AccountSuspendedException", False),
            ("SendingPausedException", False),
            ("MailFromDomainNotVerifiedException", False),
            ("NotFoundException", False),
        ],
    )
    def test_a_mail_that_ses_does_not_take_is_tried_again(self, ses: Stubber, code: str, slows: bool) -> None:
        ses.add_client_error("send_email", code, "arn:aws:ses:eu-west-1:123456789012:identity/secret.example")
        failure = present(self.mails().send(MAIL))
        assert failure.slows is slows
        assert "123456789012" not in failure.text

    def test_a_missing_permission_is_ours(self, ses: Stubber) -> None:
        ses.add_client_error("send_email", "AccessDeniedException")
        with pytest.raises(ClientError):
            self.mails().send(MAIL)

    def test_without_an_address_to_send_from_no_mail_is_sent(self, ses: Stubber) -> None:
        assert ses
        assert self.mails(sender=None).send(MAIL) == Failure("Berth sends no mail here. An operator can switch it on.")


def test_a_secret_that_one_thread_finds_is_not_dropped_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for one secret. A second one comes while the first is being found."""
    monkeypatch.setattr(kms, "_MAX_REMEMBERED", 1)

    class Service:
        def decrypt(self, **given: Any) -> dict[str, bytes]:
            return {"Plaintext": given["CiphertextBlob"]}

    class Interrupted(OrderedDict[Any, bytes]):
        def move_to_end(self, key: Any, last: bool = True) -> None:
            other.start()
            # The other thread has to wait. If it did not, it would be done long before.
            other.join(0.2)
            super().move_to_end(key, last)

    secrets = KmsSecrets(Service, "key")
    other = Thread(target=secrets.decrypt, args=(b"second", ACME_LIFE, {}))
    secrets._remembered = Interrupted()
    assert [secrets.decrypt(b"first", ACME_LIFE, {}) for _ in range(2)] == [b"first", b"first"]
    other.join()
    assert list(secrets._remembered.values()) == [b"second"]


class TestTheWhole:
    """The sender as the function has it, built from its settings."""

    @pytest.fixture
    def use_cases(
        self, events_table: DynamoDBClient, bucket: S3Client, monkeypatch: pytest.MonkeyPatch
    ) -> EventUseCases:
        assert bucket
        monkeypatch.setattr(event_ports, "client", client)
        settings = {
            "BERTH_TABLE": TABLE,
            "BERTH_EVENTS_TABLE": EVENTS_TABLE,
            "BERTH_CONTENTS_BUCKET": BUCKET,
            "BERTH_SECRETS_KEY": client("kms").create_key()["KeyMetadata"]["Arn"],
            "BERTH_VERSION": "1.2.3",
            "BERTH_EVENTS_MAIL_FROM": "berth@example.com",
            "BERTH_LOOPBACK_DESTINATIONS": "true",
        }
        ports = AwsEventPorts(Settings(settings))
        ports._dynamodb = events_table
        return EventUseCases(ports)

    @pytest.fixture
    def sending(self, use_cases: EventUseCases) -> Sending:
        assert use_cases.sending is use_cases.sending, "it remembers queues"
        return use_cases.sending

    def test_a_webhook_is_signed_with_the_secret_under_kms(self, use_cases: EventUseCases, sending: Sending) -> None:
        secret = new_signing_secret()
        encrypted = use_cases.ports.secrets.encrypt(secret.encode(), ACME_LIFE, secret_context(CONNECTION_ID))
        with Receiver() as receiver:
            answer = sending.send(outgoing(connection=a_connection(address=receiver.url, secret=encrypted)))
        assert (answer.verdict, answer.code) == (Verdict.DELIVERED, 200)
        (request,) = receiver.requests
        assert request.headers["user-agent"] == "Berth/1.2.3"
        expected = signature_headers(f"{EVENT_ID}-{CONNECTION_ID}", request.body, [secret], NOON)
        assert request.headers["webhook-signature"] == expected["webhook-signature"]

    def test_a_content_in_s3_is_loaded(self, sending: Sending, bucket: S3Client) -> None:
        content = Content(json.dumps(["a"] * 4_000).encode())
        packed = pack(content)
        bucket.put_object(Bucket=BUCKET, Key="30d/acme/1", Body=packed.data)
        event = an_event(content=None, content_key="30d/acme/1", packing=packed.packing)
        with Receiver() as receiver:
            connection = a_connection(address=receiver.url)
            assert sending.send(outgoing(event, connection)).verdict is Verdict.DELIVERED
            gone = replace(event, content_key="30d/acme/2")
            assert sending.send(outgoing(gone, connection)).verdict is Verdict.GIVE_UP
        assert [request.body for request in receiver.requests] == [content.body]

    def test_an_event_reaches_the_tenants_queue(
        self, use_cases: EventUseCases, sending: Sending, dynamodb: DynamoDBClient
    ) -> None:
        url = client("sqs").create_queue(QueueName="acme-inbound")["QueueUrl"]
        create(WholeTable(dynamodb, TABLE))
        dynamodb.update_item(
            TableName=TABLE,
            Key={"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": "METADATA"}},
            UpdateExpression="SET InboundQueueUrl = :url",
            ExpressionAttributeValues={":url": {"S": url}},
        )
        to_queue = outgoing(connection=a_connection(DestinationKind.QUEUE))
        assert sending.send(to_queue).text == "Tenant acme has no queue now.", "it has no settings"
        incarnation = present(use_cases.ports.tenant_queues.served_queue(ACME)).incarnation
        settings = event_settings(incarnation=incarnation)
        assert use_cases.ports.configuration_table("ada").put_settings(settings, replaced=None)
        assert sending.send(to_queue).verdict is Verdict.DELIVERED
        (message,) = client("sqs").receive_message(QueueUrl=url)["Messages"]
        assert json.loads(message["Body"])["payload"] == {"total": 120}

    def test_mail_comes_from_the_configured_address(self, sending: Sending) -> None:
        client("ses").verify_email_identity(EmailAddress="berth@example.com")
        to_mail = outgoing(connection=a_connection(DestinationKind.EMAIL, "ada@example.com"))
        assert sending.send(to_mail).verdict is Verdict.DELIVERED
