"""The demo's actions of a tenant's senders and receivers of events."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import sleep
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session
from rich.markup import escape
from rich.text import Text

from orchestrator.local.deployment import events_outputs
from orchestrator.local.errors import LocalError
from orchestrator.local.receiver import Hook, Receiver
from orchestrator.local.showing import MAX_REQUESTS, POLL_SECONDS, Show
from orchestrator.tenants.names import Names

_MAX_RECEIVES = 12
_SUBSCRIBER = "billing"


class EventShow(Show):
    """A demo with events."""

    # A sender of events

    def post(self, path: str, body: bytes, *, expected: int, **headers: str) -> str:
        """Send this JSON to the Events API, as a program without AWS credentials does. The id of the event, if any."""
        status, answer = self._call("POST", path, body, headers)
        meaning = escape(str(answer.get("detail") or f"event {answer.get('event_id')}"))
        line = f"  POST {path}  [bold]{status}[/]  [dim]{meaning}[/]"
        self.console.print(line, highlight=False, soft_wrap=True)
        if status != expected:
            raise LocalError(f"The answer has the status {status}, not {expected}: {answer}")
        return str(answer.get("event_id", ""))

    def await_status(self, key: str, event_id: str, status: str) -> None:
        """Wait until the event has the status. A receiver knows of a delivery before it is on record."""
        for _ in range(MAX_REQUESTS):
            _, event = self._call("GET", f"/events/{event_id}", b"", {"Authorization": f"Bearer {key}"})
            if event.get("status") == status:
                return
            sleep(POLL_SECONDS)
        raise LocalError(f"The event {event_id} is not {status}: {event}")

    def await_delivery(self, key: str, event_id: str, status: str) -> None:
        """Wait until a delivery of the event has the status."""
        for _ in range(MAX_REQUESTS):
            _, shown = self._call("GET", f"/events/{event_id}/attempts", b"", {"Authorization": f"Bearer {key}"})
            if any(each["status"] == status for each in shown.get("deliveries", [])):
                return
            sleep(POLL_SECONDS)
        raise LocalError(f"No delivery of the event {event_id} is {status}: {shown}")

    def _call(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        api = urlsplit(self.emulator.api_url(events_outputs(self.emulator)["EventsApiUrl"]))
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        request = AWSRequest(
            method,
            f"{self.emulator.endpoint}{path}",
            headers={"Host": api.netloc, "Content-Type": "application/json", **given},
            data=body,
        )
        response = URLLib3Session().send(request.prepare())
        return response.status_code, json.loads(response.content)

    # A receiver of events

    def receive_event(self, queue_url: str, event_id: str) -> None:
        for _ in range(_MAX_RECEIVES):
            for message in self.sqs.receive_message(QueueUrl=queue_url, WaitTimeSeconds=5).get("Messages", []):
                self.sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
                event = json.loads(message["Body"])
                if event["event_id"] == event_id:
                    self._print_received("queue", f"{event['event_type']} {json.dumps(event['payload'])}")
                    return
        raise LocalError(f"The event {event_id} did not come to the queue.")

    def receive_hook(self, receiver: Receiver) -> None:
        self._print_hook(receiver.next())

    def await_hook(self, receiver: Receiver, seconds: float) -> bool:
        """True if a webhook came within this time."""
        hook = receiver.next_within(seconds)
        if hook is not None:
            self._print_hook(hook)
        return hook is not None

    def _print_hook(self, hook: Hook) -> None:
        if not hook.is_signed:
            raise LocalError("A webhook came whose signature is wrong.")
        self._print_received("webhook", f"{hook.body}, the signature is right, answered {hook.answer}")

    def _print_received(self, where: str, what: str) -> None:
        self.console.print(f"  {where:8}  {escape(what)}", highlight=False, soft_wrap=True)

    def subscribe_to_own_events(self, kind_prefix: str) -> str:
        """A rule on the bus, and a queue for what it selects, as another team's stack would have. Returns its URL."""
        queue_url = self.sqs.create_queue(QueueName=_SUBSCRIBER)["QueueUrl"]
        attributes = self.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])["Attributes"]
        bus, pattern = Names().own_events_bus, {"source": ["berth"], "detail-type": [{"prefix": kind_prefix}]}
        events = self.session.client("events", endpoint_url=self.emulator.endpoint)
        events.put_rule(Name=_SUBSCRIBER, EventBusName=bus, EventPattern=json.dumps(pattern))
        target = {"Id": "queue", "Arn": attributes["QueueArn"]}
        events.put_targets(Rule=_SUBSCRIBER, EventBusName=bus, Targets=[target])
        return queue_url

    def receive_own_events(self, queue_url: str, count: int) -> None:
        received: dict[str, dict[str, Any]] = {}
        for _ in range(_MAX_RECEIVES):
            answer = self.sqs.receive_message(QueueUrl=queue_url, WaitTimeSeconds=5, MaxNumberOfMessages=10)
            for message in answer.get("Messages", []):
                self.sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
                own = json.loads(message["Body"])["detail"]
                received[own["id"]] = own
            if len(received) >= count:
                break
        else:
            raise LocalError(f"Of {count} events on the bus, {len(received)} came.")
        for own in sorted(received.values(), key=lambda each: str(each["at"])):
            data = own["data"]
            self._print_received(own["kind"], f"{data['tenant_id']} {data['version'] or ''} {own['at']}")

    @contextmanager
    def listening(self, *arguments: str) -> Iterator[Callable[[], str]]:
        """Run a command that goes on until Ctrl-C, which it gets at the end of the block.

        The given function prints and returns the next line of its output.
        """
        self.show_command(arguments)
        with subprocess.Popen(  # noqa: S603 (our own command line)
            self.command(arguments),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A shell that starts this in the background has it ignore Ctrl-C, and the command would inherit that.
            preexec_fn=_heed_interrupts,
        ) as process:
            lines = iter(process.stdout or ())

            def next_line() -> str:
                line = next(lines, "").rstrip("\n")
                self.console.print(Text.from_ansi(line), soft_wrap=True)
                return line

            try:
                yield next_line
            finally:
                process.send_signal(signal.SIGINT)
                for line in lines:
                    self.console.print(Text.from_ansi(line.rstrip("\n")), soft_wrap=True)


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
