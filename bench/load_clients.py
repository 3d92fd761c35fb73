"""Platforms' clients: a bounded number at once, each of which tries again when it is told to."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from botocore.exceptions import HTTPClientError

from orchestrator.adapters.berth_api import ApiAnswer

Call = Callable[[], ApiAnswer]

ASK_AGAIN = frozenset({429, 500, 502, 503, 504})
"""What API Gateway or Berth says when there is no capacity now."""
NO_ANSWER = 0
"""In a status' place when the connection broke or nothing came in time."""

_MOST_TRIES = 60
_LONGEST_PAUSE = 5.0


@dataclass(frozen=True, slots=True)
class Answered:
    """One call, as its caller felt it: the last answer, and the time until it came, pauses included."""

    status: int
    seconds: float
    retries: int

    @property
    def is_error(self) -> bool:
        return not 200 <= self.status < 300


def patiently(call: Call, *, deadline: float, pause: Callable[[float], None] = time.sleep) -> Answered:
    """Call until there is an answer other than "try again", or the clients' patience ends."""
    began = time.perf_counter()
    for retries in range(_MOST_TRIES):
        status, retry_after = _tried(call)
        seconds = _pause_before(retries) if retry_after is None else retry_after
        if status not in ASK_AGAIN | {NO_ANSWER} or time.monotonic() + seconds > deadline:
            break
        if retries + 1 < _MOST_TRIES:
            pause(seconds)
    return Answered(status, time.perf_counter() - began, retries)


def at_once(calls: Iterable[Call], *, clients: int, deadline: float) -> Sequence[Answered]:
    """All of the calls, in that order, as fast as so many clients get answers."""
    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(lambda call: patiently(call, deadline=deadline), calls))


def _tried(call: Call) -> tuple[int, float | None]:
    try:
        answer = call()
    except HTTPClientError:
        return NO_ANSWER, None
    return answer.status, answer.retry_after


def _pause_before(retry: int) -> float:
    """Ever longer, and never the same for two clients."""
    return float(min(0.25 * 2**retry, _LONGEST_PAUSE) * random.uniform(0.5, 1.0))
