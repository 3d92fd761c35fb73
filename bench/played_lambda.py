"""Plays what AWS does between the functions of deliveries: the table's stream and two queues call their functions.

The functions run in this process, on threads. Tables and queues are the emulator's.
"""

from __future__ import annotations

import base64
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from orchestrator.adapters.dynamodb.event_keys import EVENT_PREFIX

Handler = Callable[[object, object], Any]

STREAM_BATCH = 100
QUEUE_BATCH = 10
VISIBILITY_SECONDS = 360
_LOOK_SECONDS = 0.2
"""How often a queue is looked at to which nothing was sent: delayed messages become visible by themselves."""


@dataclass
class Stream:
    """Calls a function with the new rows of events. Not with what is changed: the stream's filter keeps that back."""

    handler: Handler
    every_seconds: float = 0.0
    """The time between two looks at the stream. Lambda looks four times per second; 0 is at once."""
    _records: SimpleQueue[dict[str, Any]] = field(default_factory=SimpleQueue)

    def watch(self, session: Any, table: str) -> None:
        """Have the rows reported that clients of the session put into the table."""

        def asked(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
            if params["TableName"] == table and params["Item"]["pk"]["S"].startswith(EVENT_PREFIX):
                context["new_row"] = params["Item"]

        def made(http_response: Any, context: dict[str, Any], **_: Any) -> None:
            if http_response.status_code == 200 and (row := context.pop("new_row", None)):
                self._records.put(record_of(row))

        session.register("provide-client-params.dynamodb.PutItem", asked)
        session.register("after-call.dynamodb.PutItem", made)

    def run(self, ended: threading.Event) -> None:
        while not ended.is_set():
            if self.every_seconds:
                ended.wait(self.every_seconds)
            batch = self._take()
            while batch:
                with contextlib.suppress(Exception):  # As Lambda does, the batch is handed over again.
                    self.handler({"Records": batch}, None)
                    batch = self._take(wait=False)

    def _take(self, *, wait: bool = True) -> list[dict[str, Any]]:
        taken: list[dict[str, Any]] = []
        with contextlib.suppress(Empty):
            while len(taken) < STREAM_BATCH:
                taken.append(self._records.get(block=wait and not taken, timeout=_LOOK_SECONDS))
        return taken


def record_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A record as Lambda hands it over: bytes are text there."""
    keys = {name: row[name] for name in ("pk", "sk")}
    image = {name: _as_text(value) for name, value in row.items()}
    return {"eventName": "INSERT", "dynamodb": {"Keys": keys, "NewImage": image}}


def _as_text(value: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {kind: base64.b64encode(content).decode()}
        case "M":
            return {kind: {name: _as_text(each) for name, each in content.items()}}
    return {kind: content}


@dataclass
class Queue:
    """Calls a function with the messages of a queue, in batches, several batches at once."""

    client: Any
    url: str
    handler: Handler
    at_once: int
    batches: int = 0
    _sent: threading.Event = field(default_factory=threading.Event)

    def watch(self, session: Any) -> None:
        """Look at the queue as soon as a client of the session has sent something, as a long poll does."""

        def asked(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
            context["queue"] = params["QueueUrl"]

        def made(context: dict[str, Any], **_: Any) -> None:
            if context.get("queue") == self.url:
                self._sent.set()

        for operation in ("SendMessage", "SendMessageBatch"):
            session.register(f"provide-client-params.sqs.{operation}", asked)
            session.register(f"after-call.sqs.{operation}", made)

    def run(self, ended: threading.Event) -> None:
        free = threading.Semaphore(self.at_once)
        with ThreadPoolExecutor(self.at_once) as pool:
            while not ended.is_set():
                if not free.acquire(timeout=_LOOK_SECONDS):
                    continue
                messages = self._receive()
                if messages:
                    self.batches += 1
                    pool.submit(self._call, messages).add_done_callback(lambda _done: free.release())
                    continue
                free.release()
                self._sent.wait(_LOOK_SECONDS)

    def _receive(self) -> Sequence[Mapping[str, Any]]:
        # Cleared before looking: what is sent while looking sets it again.
        self._sent.clear()
        found = self.client.receive_message(QueueUrl=self.url, MaxNumberOfMessages=QUEUE_BATCH)
        return found.get("Messages", [])  # type: ignore[no-any-return]

    def _call(self, messages: Sequence[Mapping[str, Any]]) -> None:
        records = [{"messageId": each["MessageId"], "body": each["Body"]} for each in messages]
        answer = self.handler({"Records": records}, None) or {}
        failed = {each["itemIdentifier"] for each in answer.get("batchItemFailures", [])}
        done = [
            {"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]}
            for number, each in enumerate(messages)
            if each["MessageId"] not in failed
        ]
        if done:
            self.client.delete_message_batch(QueueUrl=self.url, Entries=done)


@contextlib.contextmanager
def running(*sources: Stream | Queue) -> Iterator[None]:
    """Let the sources call their functions until the end. Functions that run then are waited for."""
    ended = threading.Event()
    threads = [threading.Thread(target=source.run, args=(ended,), daemon=True) for source in sources]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
