"""A console that ends while the control plane hangs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestrator.api.requesting import HttpRequest
from orchestrator.client.transport import ApiAnswer
from tests.browser.conftest import running
from tests.browser.fleet import FleetApi, a_fleet
from tests.browser.http import Caller


class Hanging:
    """An API that does not answer until it is let go."""

    def __init__(self, api: FleetApi) -> None:
        self._send = api.send
        self.asked = threading.Event()
        self.let_go = threading.Event()
        self.keeps_the_process = False

    def send(self, request: HttpRequest) -> ApiAnswer:
        self.keeps_the_process = not threading.current_thread().daemon
        self.asked.set()
        self.let_go.wait()
        return self._send(request)


def test_a_console_ends_while_the_control_plane_hangs(capsys: pytest.CaptureFixture[str]) -> None:
    api = a_fleet()
    hanging = Hanging(api)
    api.send = hanging.send  # type: ignore[method-assign]
    try:
        with ThreadPoolExecutor(1) as threads:
            with running(api) as here:
                caller = Caller.with_session(here)
                opened = threads.submit(caller.get, "/tenants/acme")
                hanging.asked.wait()
            # The server has ended, and the request hangs on.
            answer = opened.result()
    finally:
        hanging.let_go.set()
    assert (answer.status, "The console has ended" in answer.body) == (503, True)
    assert not hanging.keeps_the_process, "A process waits for such threads before it ends."
    assert capsys.readouterr().err == "", "Nothing is wrong with the console."
