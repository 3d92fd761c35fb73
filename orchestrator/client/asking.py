"""Asking the API: again where that helps, as often as the API wishes, and not for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from orchestrator.api.answers import RETRY_AFTER_SECONDS

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

PATIENCE_SECONDS = 20
"""How long an API that is too busy to answer is asked again by commands that do not wait for anything else."""

_TOO_BUSY = frozenset({429, 502, 503, 504})

Later = Callable[["ApiAnswer"], str | None]
"""What is to be waited for before asking again; ``None`` when the answer is one."""


def too_busy(answer: ApiAnswer) -> str | None:
    if answer.status not in _TOO_BUSY:
        return None
    reason = answer.body.get("detail") or answer.body.get("message") or "no reason was given"
    return f"The API asks to come back later ({answer.status}): {reason}"


class Telling(Protocol):
    def tell(self, what: str) -> None:
        """Say what is being waited for."""


class Asking:
    def __init__(
        self,
        progress: Telling,
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

    def __call__(self, question: Callable[[], ApiAnswer], later: Later = too_busy) -> ApiAnswer:
        """Ask until the answer is other than "later", or the time is up. The last answer is returned then."""
        while True:
            answer = question()
            awaited = later(answer)
            pause = max(1, answer.retry_after or RETRY_AFTER_SECONDS)
            if awaited is None or self._monotonic() + pause > self._deadline:
                return answer
            self._progress.tell(awaited)
            self._sleep(pause)

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return self._monotonic() - self._began
