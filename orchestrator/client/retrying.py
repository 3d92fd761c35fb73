"""Repeats requests to the API until there is a final answer or a deadline has passed, at the pace of Retry-After."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from orchestrator.api.responses import RETRY_AFTER_SECONDS

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

BUSY_RETRY_SECONDS = 20
"""The time for which requests to a busy API are repeated by commands that do not wait for a result."""

_TOO_BUSY = frozenset({429, 502, 503, 504})

RetryReason = Callable[["ApiAnswer"], str | None]
"""Returns why the request should be repeated, for the user, or ``None`` if the answer is final."""


def too_busy(answer: ApiAnswer) -> str | None:
    if answer.status not in _TOO_BUSY:
        return None
    reason = answer.body.get("detail") or answer.body.get("message") or "no reason was given"
    return f"The API asks to try again later ({answer.status}): {reason}"


class ProgressDisplay(Protocol):
    def show_waiting(self, reason: str) -> None:
        """Show the user why the command is waiting."""


class Retrying:
    """Repeats requests for at most ``seconds``."""

    def __init__(
        self,
        progress: ProgressDisplay,
        *,
        seconds: float,
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._progress = progress
        self._monotonic = monotonic
        self._sleep = sleep
        self._began = monotonic()
        self._deadline = self._began + seconds

    def __call__(self, send: Callable[[], ApiAnswer], retry_reason: RetryReason = too_busy) -> ApiAnswer:
        """Repeat the request until ``retry_reason`` returns ``None`` or the time is up, and return the last answer."""
        while True:
            answer = send()
            reason = retry_reason(answer)
            pause = max(1, answer.retry_after or RETRY_AFTER_SECONDS)
            if reason is None or self._monotonic() + pause > self._deadline:
                return answer
            self._progress.show_waiting(reason)
            self._sleep(pause)

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return self._monotonic() - self._began
