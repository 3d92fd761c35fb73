"""Pages of other sites, in a real browser that has a session of the console."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Running

FORM = """<!doctype html><title>evil</title>
<form method="post" action="{target}/tenants/duff/do/retry"><input name="csrf" value="x"><button>Win</button></form>
<iframe src="{target}/"></iframe><img id="image" src="{target}/static/berth.svg">
"""


@contextmanager
def another_site(target: str) -> Iterator[str]:
    """A page on another host name, and so of another site, with a form that goes to the console."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(FORM.format(target=target).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def victim(browser: Browser, console: Running) -> Iterator[Page]:
    """The operator's browser. What it logs about the other site's page is not the console's."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(console.server.address())
    yield page
    context.close()


def test_a_form_of_another_site_is_refused(victim: Page, console: Running) -> None:
    before = len(console.api.executions.started)
    with another_site(console.origin) as address:
        victim.goto(address)
        with victim.expect_response(lambda answer: answer.request.method == "POST") as sent:
            victim.get_by_role("button", name="Win").click()
    # SameSite=Strict keeps the cookie away from it; the origin and the field would refuse it, too.
    assert sent.value.status == 401
    assert len(console.api.executions.started) == before
    victim.goto(console.url("/tenants/duff"))
    expect(victim.get_by_role("heading", level=1)).to_contain_text("FAILED")


def test_a_page_of_another_site_can_neither_frame_the_console_nor_load_its_files(
    victim: Page, console: Running
) -> None:
    with another_site(console.origin) as address:
        victim.goto(address)
        assert victim.evaluate("document.getElementById('image').naturalWidth") == 0
        assert "Overview" not in victim.frames[1].content()
