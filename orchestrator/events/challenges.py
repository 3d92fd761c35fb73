"""Questions by which providers and people check the address of a source. They are answered, and no event is stored.

| provider | question                                        | answer                    |
|----------|-------------------------------------------------|---------------------------|
| slack    | a JSON body with `type` = `url_verification`    | `{"challenge": "..."}`    |
| github   | X-GitHub-Event: ping, when a webhook is created | `{"status": "pong"}`      |
| any      | GET or HEAD                                     | `{"status": "listening"}` |

The first two are signed like events, and answered only if the signature is right. A GET needs no signature: it tells
nothing but that the source exists. A GET is never an event, since browsers and previews of links send it by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.common.input_limits import is_utf8
from orchestrator.events.incoming import Incoming, json_object
from orchestrator.events.records import Provider, Source

CHECKING_METHODS = frozenset({"GET", "HEAD"})
MAX_CHALLENGE_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Challenge:
    """A question with its answer, which is sent as JSON, so that no browser takes it for a page."""

    question: str
    answer: Mapping[str, str]


LISTENING = Challenge("address check", {"status": "listening"})
_PONG = Challenge("ping", {"status": "pong"})


def challenge_in(source: Source, incoming: Incoming) -> Challenge | None:
    """The question in a verified request. ``None`` if the request is an event."""
    if source.provider is Provider.GITHUB:
        return _PONG if incoming.headers.get("x-github-event") == "ping" else None
    if source.provider is Provider.SLACK and incoming.media_type == "application/json":
        body = json_object(incoming.body)
        if body.get("type") == "url_verification":
            return _slack(body.get("challenge"))
    return None


def _slack(challenge: object) -> Challenge:
    usable = isinstance(challenge, str) and len(challenge) <= MAX_CHALLENGE_CHARACTERS and is_utf8(challenge)
    return Challenge("url_verification", {"challenge": str(challenge) if usable else ""})
