"""The guard, attack by attack. These requests come from a program, because a browser would not send most of them."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import quote, urlsplit

import pytest
from markupsafe import escape

from orchestrator.common.tenant_ids import TenantId
from orchestrator.console.guard import CONTENT_POLICY, MAX_BODY
from orchestrator.console.peers import is_ours, owner_of_socket
from orchestrator.console.sessions import IDLE_SECONDS, TICKET_SECONDS, Sessions
from orchestrator.reconciling.records import Finding, Kind, Remedy
from orchestrator.rollouts.records import Result, StageStatus
from orchestrator.tenants.records import RootCause
from tests.browser.conftest import Running, running
from tests.browser.every_page import everything
from tests.browser.fleet import READY_AT_FIRST, a_fleet, under_way
from tests.browser.http import Caller

RETRY = "/tenants/duff/do/retry"
MARKUP = """"'><img src=x onerror=alert(1)>"""


@pytest.fixture(scope="module")
def console() -> Iterator[Running]:
    with running(a_fleet()) as here:
        yield here


@pytest.fixture(scope="module")
def ada(console: Running) -> Caller:
    return Caller.with_session(console)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]:{port}", ""])
def test_another_host_is_refused(console: Running, ada: Caller, host: str) -> None:
    """DNS rebinding: a name of the attacker's that leads to 127.0.0.1."""
    answer = ada.get("/", Host=host.format(port=console.server.port))
    assert answer.status in (400, 421)
    assert "duff" not in answer.body


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_both_names_of_this_machine_are_answered(console: Running, ada: Caller, name: str) -> None:
    assert ada.get("/", Host=f"{name}:{console.server.port}").status == 200


@pytest.mark.parametrize("path", ["/", "/tenants", "/tenants/acme", RETRY, "/nothing"])
def test_without_a_session_no_page_is_shown(console: Running, path: str) -> None:
    answer = Caller(console).get(path)
    assert answer.status == 401
    assert "acme" not in answer.body
    assert Caller(console, f"berth-{console.server.port}=guessed").get(path).status == 401


def test_a_ticket_works_once(console: Running) -> None:
    address = urlsplit(console.server.address())
    target = f"{address.path}?{address.query}"
    first = Caller(console).get(target)
    assert (first.status, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(f"berth-{console.server.port}=")
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    again = Caller(console).get(target)
    assert (again.status, "set-cookie" in again.headers) == (401, False)


def test_the_printed_address_works_again_for_a_browser_with_a_session(console: Running, ada: Caller) -> None:
    answer = ada.get("/enter?ticket=used")
    assert (answer.status, answer.headers["location"], "set-cookie" in answer.headers) == (303, "/", False)
    of_another_site = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "image"}
    assert ada.ask("GET", "/enter?ticket=used", of_another_site).status == 403
    assert Caller(console).get("/enter?ticket=used").status == 401


def test_a_new_ticket_replaces_the_one_before(console: Running) -> None:
    old, new = (urlsplit(console.server.address()) for _ in range(2))
    assert Caller(console).get(f"{old.path}?{old.query}").status == 401
    assert Caller(console).get(f"{new.path}?{new.query}").status == 303


@pytest.mark.parametrize("ticket", ["", "x", "\N{SNOWMAN}", "a" * 5_000])
def test_a_ticket_cannot_be_guessed(console: Running, ticket: str) -> None:
    assert Caller(console).get(f"/enter?ticket={quote(ticket)}").status == 401


def test_a_ticket_is_too_old_after_a_minute() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    ticket = sessions.issue_ticket()
    now[0] = TICKET_SECONDS
    assert sessions.enter(ticket) is None


def test_a_session_ends_when_nobody_uses_it_although_its_page_updates_itself() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    session = sessions.enter(sessions.issue_ticket())
    assert session is not None
    now[0] = IDLE_SECONDS - 1
    assert sessions.find(session.key, by_a_person=False)
    now[0] += 2
    assert sessions.find(session.key, by_a_person=False) is None


def test_a_click_keeps_a_session_alive() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    session = sessions.enter(sessions.issue_ticket())
    assert session is not None
    now[0] = IDLE_SECONDS - 1
    assert sessions.find(session.key, by_a_person=True)
    now[0] += 2
    assert sessions.find(session.key, by_a_person=True)


def test_a_browser_without_a_session_gets_a_new_address_at_the_terminal_but_not_one_per_request() -> None:
    with running(a_fleet()) as here:
        for _ in range(3):
            assert Caller(here).get("/tenants").status == 401
        (line,) = here.said
        address = urlsplit(line.rpartition(" ")[2])
        assert Caller(here).get(f"{address.path}?{address.query}").status == 303


def test_a_page_that_is_left_open_after_its_session_has_ended_brings_no_new_address_to_the_terminal() -> None:
    with running(a_fleet()) as here:
        assert Caller(here).get("/tenants", **{"HX-Request": "true"}).status == 401
        assert here.said == []


class TestOtherUsersOfThisMachine:
    """Every user of the machine sees the command line of the browser, and so the ticket, and could be faster."""

    def test_a_ticket_that_another_user_shows_is_refused_and_stays_good(self) -> None:
        ours = [False, True]
        with running(a_fleet(), ours=lambda _peer, _here: ours.pop(0)) as here:
            address = urlsplit(here.server.address())
            assert Caller(here).get(f"{address.path}?{address.query}").status == 403
            assert Caller(here).get(f"{address.path}?{address.query}").status == 303

    def test_another_user_gets_no_new_address_by_asking_for_pages(self) -> None:
        with running(a_fleet(), ours=lambda _peer, _here: False) as here:
            assert Caller(here).get("/tenants").status == 401
            assert here.said == []

    @pytest.mark.parametrize(
        ("owner", "ours"), [(0, True), (os.getuid(), True), (os.getuid() + 1, False), (None, False)]
    )
    def test_a_connection_is_ours_if_its_socket_is(self, owner: int | None, ours: bool) -> None:
        found = is_ours(("127.0.0.1", 1), ("127.0.0.1", 2), owner_of=lambda _peer, _here: owner, owners_are_known=True)
        assert found is ours

    def test_a_socket_that_is_not_there_has_no_owner(self) -> None:
        assert owner_of_socket(("127.0.0.1", 1), ("127.0.0.1", 2)) is None

    def test_a_connection_from_another_address_does_not_pass_for_the_operators_with_the_same_port(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            here = server.getsockname()
            with socket.create_connection(here) as operators:
                peer = operators.getsockname()
                with socket.create_connection(here, source_address=("127.0.0.2", peer[1])) as strangers:
                    assert owner_of_socket(peer, here) == os.getuid()
                    assert owner_of_socket(strangers.getsockname(), here) is None


class TestPagesOfOtherSites:
    """Other ports of this machine are the same site for the browser, so their requests have the cookie."""

    @pytest.mark.parametrize("site", ["same-site", "cross-site"])
    @pytest.mark.parametrize("what", ["image", "empty", "script", "iframe"])
    def test_embedding_by_another_site_is_refused(self, ada: Caller, site: str, what: str) -> None:
        answer = ada.ask("GET", RETRY, {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": what})
        assert (answer.status, "duff" in answer.body) == (403, False)

    def test_a_link_of_another_site_may_be_followed(self, ada: Caller) -> None:
        assert ada.ask("GET", "/tenants", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "document"}).status == 200

    @pytest.mark.parametrize("name", ["prefix", "state", "version", "label", "tier", "pinned", "cursor"])
    def test_the_command_to_copy_runs_nothing_that_an_address_has_brought(self, ada: Caller, name: str) -> None:
        commands = ada.get(f"/tenants?{name}={quote('a=b; curl evil.example')}").body.split('data-copy="')[1:]
        assert not [each for each in commands if "; curl" in each.split('"')[0].replace("&#39;a=b; curl", "")]

    def test_the_values_in_the_command_to_copy_are_quoted(self, ada: Caller) -> None:
        assert "--label &#39;plan=of one&#39;" in ada.get(f"/tenants?label={quote('plan=of one')}").body


class TestForms:
    def test_a_form_of_the_console_is_taken(self) -> None:
        with running(a_fleet()) as here:
            ada = Caller.with_session(here)
            answer = ada.post(RETRY, ada.hidden(RETRY))
            assert (answer.status, answer.headers["location"]) == (303, "/tenants/duff")
            assert here.api.executions.started[-1][0].tenant == TenantId.parse("duff")

    @pytest.mark.parametrize(
        "origin", ["", "null", "http://evil.example", "http://127.0.0.1", "https://127.0.0.1:{port}"]
    )
    def test_a_form_of_another_origin_is_refused(self, console: Running, ada: Caller, origin: str) -> None:
        before = len(console.api.executions.started)
        assert ada.post(RETRY, ada.hidden(RETRY), Origin=origin.format(port=console.server.port)).status == 403
        assert len(console.api.executions.started) == before

    @pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
    def test_a_form_that_the_browser_says_is_of_another_site_is_refused(
        self, console: Running, ada: Caller, site: str
    ) -> None:
        before = len(console.api.executions.started)
        assert ada.post(RETRY, ada.hidden(RETRY), Sec_Fetch_Site=site).status == 403
        assert len(console.api.executions.started) == before

    @pytest.mark.parametrize("csrf", ["", "guessed", "\N{SNOWMAN}"])
    def test_a_form_without_the_sessions_secret_is_refused(self, console: Running, ada: Caller, csrf: str) -> None:
        before = len(console.api.executions.started)
        assert ada.post(RETRY, ada.hidden(RETRY) | {"csrf": csrf}).status == 403
        assert len(console.api.executions.started) == before

    def test_the_secret_of_another_session_is_refused(self, console: Running, ada: Caller) -> None:
        other = Caller.with_session(console)
        assert ada.post(RETRY, ada.hidden(RETRY) | {"csrf": other.hidden(RETRY)["csrf"]}).status == 403

    def test_a_confirmed_form_works_once(self) -> None:
        with running(a_fleet()) as here:
            ada = Caller.with_session(here)
            fields = ada.hidden(RETRY)
            before = len(here.api.executions.started)
            assert ada.post(RETRY, fields).status == 303
            again = ada.post(RETRY, fields)
            assert (again.status, len(here.api.executions.started)) == (409, before + 1)

    def test_the_confirmation_of_one_form_is_no_confirmation_of_another(self, ada: Caller) -> None:
        answer = ada.post("/tenants/krusty/do/retry", ada.hidden(RETRY))
        assert (answer.status, "sent already" in answer.body) == (409, True)

    def test_an_action_that_changed_since_it_was_shown_is_not_confirmed(self) -> None:
        """A person who confirms the approval of stage 2 has not approved stage 3."""
        api = a_fleet()
        path = f"/rollouts/{under_way(api)}/do/approve"
        api.stage_is_now(2, status=StageStatus.AWAITING_APPROVAL, in_flight=0)
        with running(api) as here:
            ada = Caller.with_session(here)
            fields = ada.hidden(path)
            api.stage_is_now(2, status=StageStatus.DONE)
            api.stage_is_now(3, status=StageStatus.AWAITING_APPROVAL)
            api.is_now(current_stage=3)
            answer = ada.post(path, fields)
            assert (answer.status, "nothing was done" in answer.body) == (422, True)
            assert ada.post(path, ada.hidden(path)).status == 303

    @pytest.mark.parametrize("verb", ["promote", "approve"])
    def test_a_form_from_an_older_page_acts_on_no_other_stage(self, verb: str) -> None:
        """The button of a page that showed stage 2 opens the form of stage 2, whichever stage waits by now."""
        api = a_fleet()
        rollout = under_way(api)
        api.stage_is_now(2, status=StageStatus.DONE)
        api.is_now(current_stage=3)
        if verb == "approve":
            api.stage_is_now(3, status=StageStatus.AWAITING_APPROVAL)
        else:
            api.stage_is_now(3, status=StageStatus.BAKING, baked_until=api.clock.now() + timedelta(hours=1))
        with running(api) as here:
            ada = Caller.with_session(here)
            path = f"/rollouts/{rollout}/do/{verb}"
            assert f'href="{path}?stage=3"' in ada.get(f"/rollouts/{rollout}").body
            older = ada.get(f"{path}?stage=2")
            assert (older.status, "Stage 2 does not wait any more." in older.body) == (409, True)
            assert ada.get(f"{path}?stage=3").status == 200

    def test_no_button_but_the_approval_passes_an_approval(self) -> None:
        api = a_fleet()
        path = f"/rollouts/{under_way(api)}/do/promote"
        api.stage_is_now(2, status=StageStatus.AWAITING_APPROVAL, in_flight=0)
        with running(api) as here:
            shown = Caller.with_session(here).get(path)
            assert (shown.status, "Stage 2 awaits approval." in shown.body) == (409, True)

    @pytest.mark.parametrize("kind", ["text/plain", "application/json", "multipart/form-data; boundary=x", ""])
    def test_only_forms_are_taken(self, ada: Caller, kind: str) -> None:
        assert ada.post(RETRY, ada.hidden(RETRY), Content_Type=kind).status == 415

    def test_a_form_that_is_too_long_is_refused(self, ada: Caller) -> None:
        assert ada.post(RETRY, ada.hidden(RETRY) | {"reason": "x" * MAX_BODY}).status == 413
        assert ada.post(RETRY, {f"field{number}": "x" for number in range(500)}).status == 413

    @pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
    def test_no_other_method_is_taken(self, ada: Caller, method: str) -> None:
        assert ada.ask(method, RETRY).status == 405

    def test_the_server_compares_the_typed_confirmation_of_a_destructive_action(
        self, console: Running, ada: Caller
    ) -> None:
        path = "/tenants/acme/do/delete"
        before = len(console.api.executions.started)
        for typed in ("", "ACME", "acm"):
            answer = ada.post(path, ada.hidden(path) | {"typed": typed})
            assert (answer.status, "nothing was done" in answer.body) == (422, True)
        assert len(console.api.executions.started) == before

    @pytest.mark.parametrize("number", ["9" * 4_300, "9" * 5_000, "-1", "1e3", "\N{ARABIC-INDIC DIGIT ONE}", "0x10"])
    def test_a_number_that_is_none_is_refused_with_a_sentence(self, ada: Caller, number: str) -> None:
        path = "/tenants/acme/do/delete"
        answer = ada.post(path, ada.hidden(path) | {"typed": "acme", "drain": number})
        assert (answer.status, "must be a number from" in answer.body) == (422, True)


@pytest.fixture(scope="module")
def looking() -> Iterator[Caller]:
    with running(a_fleet(), read_only=True) as here:
        yield Caller.with_session(here)


class TestReadOnly:
    def test_there_are_no_buttons(self, looking: Caller) -> None:
        page = looking.get("/tenants/duff").body
        assert "/do/" not in page
        assert "READ-ONLY" in page

    @pytest.mark.parametrize(
        "path", [RETRY, "/tenants/acme/do/delete", "/tenants/acme/do/label", "/rollouts/plan", "/health/compare"]
    )
    def test_the_page_of_an_action_has_no_form(self, looking: Caller, path: str) -> None:
        answer = looking.get(path)
        assert (answer.status, "This console is read-only" in answer.body) == (409, True)
        assert 'method="post"' not in answer.body
        assert looking.hidden(path) == {}

    def test_no_page_leads_to_an_order_or_has_a_form_for_one(self) -> None:
        with everything(read_only=True) as pages:
            caller = Caller.with_session(pages.here)
            found = {}
            for sight in pages.sights.values():
                path = sight.path.replace("ROLLOUT", pages.here.rollout)
                body = caller.get(path).body
                orders = re.findall(r'href="([^"]*(?:/do/|/repair/|/compare|/rollouts/plan)[^"]*)"', body)
                forms = [] if path == "/settings" else re.findall('method="post"', body)
                if orders or forms:
                    found[path] = [*orders, *forms]
        assert found == {}

    def test_the_server_refuses(self, looking: Caller) -> None:
        before = len(looking.here.api.executions.started)
        known = {"csrf": looking.hidden("/settings")["csrf"]}
        assert looking.post(RETRY, known).status == 403
        assert len(looking.here.api.executions.started) == before


def test_only_this_machine_can_connect(console: Running) -> None:
    """Another address of this machine stands for those that others can reach."""
    with pytest.raises(OSError, match=r"refused|assign|unreachable"):
        socket.create_connection(("127.0.0.2", console.server.port), timeout=10)


def test_a_websocket_is_refused(ada: Caller) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    assert ada.ask("GET", "/", {**upgrade, "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}).status == 403


@pytest.mark.parametrize("path", ["/", "/tenants/acme", "/nothing", "/static/console.css", "/static/../guard.py"])
def test_every_answer_has_the_headers(ada: Caller, path: str) -> None:
    headers = ada.get(path).headers
    assert headers["content-security-policy"] == CONTENT_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"
    assert "server" not in headers


def test_answers_to_strangers_have_the_headers_too(console: Running) -> None:
    assert Caller(console).get("/").headers["content-security-policy"] == CONTENT_POLICY


@pytest.mark.parametrize(
    "path", ["//evil.example/%2e%2e", "/https://evil.example", "/tenants/%2F%2Fevil.example", "/\\evil.example"]
)
def test_no_page_links_to_another_host(ada: Caller, path: str) -> None:
    """A path can look like another host's address, and a page that repeats it as a link would lead there."""
    body = ada.get(path).body
    links = [part.split('"')[0] for part in body.split('href="')[1:]] + [
        part.split('"')[0] for part in body.split('data-hx-get="')[1:]
    ]
    assert links
    assert not [link for link in links if link.startswith(("//", "/\\", "http"))]


def test_files_outside_of_the_static_ones_are_not_served(ada: Caller) -> None:
    for path in ("/static/../guard.py", "/static/%2e%2e/guard.py", "/static/..%2fguard.py"):
        assert ada.get(path).status == 404


def test_nothing_that_an_address_has_brought_becomes_markup(ada: Caller) -> None:
    for path in ("/tenants?label={}%3D1", "/tenants?prefix={}", "/tenants?tier={}", "/rollouts/plan?alarm={}", "/{}"):
        assert MARKUP not in ada.get(path.format(quote(MARKUP, safe=""))).body


def test_nothing_that_others_have_written_becomes_markup() -> None:
    api = a_fleet()
    cause = RootCause(f"Queue{MARKUP}", f"Type{MARKUP}", f"because{MARKUP}")
    assert api.create(TenantId.parse("evil"), reason=f"reason{MARKUP}").status == 202
    api.begin()
    api.fail(cause)
    rollout = under_way(api)
    api.came_to(TenantId.parse(READY_AT_FIRST[2]), Result.FAILED, stage=2, cause=cause)
    api.is_now(reason=f"halted{MARKUP}")
    api.surveyed(Finding(Kind.DRIFTED, f"stack{MARKUP}", f"detail{MARKUP}", Remedy.NONE, f"advice{MARKUP}"))
    assert api.request("POST", "/releases/0.1.0/withdraw", body={"reason": f"bad{MARKUP}"}).status == 200
    shown = {
        "/tenants": ("because",),
        "/tenants/evil": ("Queue", "Type", "because", "reason"),
        f"/rollouts/{rollout}": ("because", "halted"),
        "/releases": ("bad",),
        "/health": ("stack", "detail", "advice"),
    }
    with running(api) as here:
        ada = Caller.with_session(here)
        for path, texts in shown.items():
            body = ada.get(path).body
            assert MARKUP not in body, path
            for text in texts:
                assert f"{text}{escape(MARKUP)}" in body, (path, text)
