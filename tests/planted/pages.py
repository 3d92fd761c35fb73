"""Planted bugs in the console."""

from __future__ import annotations

from tests.planted.bugs import PlantedBug, in_function, in_page

GUARD = "browser/test_guard.py"
ADMIT = "orchestrator.console.guard.Guard._admit"
SEND = "orchestrator.console.actions._send"
STEPS = "orchestrator.cli.tenant_next"
NEXT = "unit/cli/test_tenant_next.py"

BUGS = {
    "the form's secret is not compared": PlantedBug(
        "A page of another site can send a form in the operator's name.",
        in_function(ADMIT, 'if not equal(fields.get(CSRF_FIELD, ""), session.csrf):', "if False:"),
        f"{GUARD}::TestForms::test_a_form_without_the_sessions_secret_is_refused",
    ),
    "the form's origin is not compared": PlantedBug(
        "A form of another site is taken.",
        in_function("orchestrator.console.guard._check_origin", 'if headers.single("origin") != ours:', "if False:"),
        f"{GUARD}::TestForms::test_a_form_of_another_origin_is_refused",
    ),
    "any host name is answered": PlantedBug(
        "A page of an attacker reads the console by DNS rebinding.",
        in_function(ADMIT, "if host not in self._hosts:", "if host is None:"),
        f"{GUARD}::test_another_host_is_refused",
    ),
    "a session never ends": PlantedBug(
        "A browser that was left open is let in days later.",
        in_function("orchestrator.console.sessions.Sessions.find", "> IDLE_SECONDS", "> 10 * IDLE_SECONDS"),
        f"{GUARD}::test_a_session_ends_when_nobody_uses_it_although_its_page_updates_itself",
    ),
    "a ticket works twice": PlantedBug(
        "Somebody who sees the address in the terminal gets a session, too.",
        in_function(
            "orchestrator.console.sessions.Sessions.enter",
            "(_, until), self._ticket = self._ticket, None",
            "_, until = self._ticket",
        ),
        f"{GUARD}::test_a_ticket_works_once",
    ),
    "the cookie can be read by scripts": PlantedBug(
        "A script on a page could take the session away.",
        in_function("orchestrator.console.guard.Guard._enter", "; HttpOnly", ""),
        f"{GUARD}::test_a_ticket_works_once",
    ),
    "pages may be embedded": PlantedBug(
        "A page of another site keeps the session alive and takes its notices.",
        in_function("orchestrator.console.guard._check_not_embedded", "if of_another and", "if False and"),
        f"{GUARD}::TestPagesOfOtherSites::test_embedding_by_another_site_is_refused",
    ),
    "answers have no headers": PlantedBug(
        "Browsers run scripts that a page did not bring.",
        in_function("orchestrator.console.guard._with_headers", "[*given, *ours]", "given"),
        f"{GUARD}::test_answers_to_strangers_have_the_headers_too",
    ),
    "a read-only console takes forms": PlantedBug(
        "Somebody who may only look can delete tenants.",
        in_function(ADMIT, "if self._read_only and", "if False and"),
        f"{GUARD}::TestReadOnly::test_the_server_refuses",
    ),
    "the typed confirmation is not compared": PlantedBug(
        "A tenant is deleted although its id was not typed.",
        in_function(SEND, "if action.typed is not None and", "if False and"),
        f"{GUARD}::TestForms::test_the_server_compares_the_typed_confirmation_of_a_destructive_action",
    ),
    "a form works twice": PlantedBug(
        "A second click starts a second operation.",
        in_function("orchestrator.console.sessions.Session.spend", ".pop(", ".get("),
        f"{GUARD}::TestForms::test_a_confirmed_form_works_once",
    ),
    "another action is confirmed": PlantedBug(
        "Somebody who confirms stage 2 approves stage 3.",
        in_function(SEND, "if shown != action.shown:", "if False:"),
        f"{GUARD}::TestForms::test_an_action_that_changed_since_it_was_shown_is_not_confirmed",
    ),
    "nothing is escaped": PlantedBug(
        "A reason that somebody has written runs as a script in the operator's page.",
        in_function("orchestrator.console.view.environment", "autoescape=True", "autoescape=False"),
        f"{GUARD}::test_nothing_that_others_have_written_becomes_markup",
    ),
    "a typed secret comes back": PlantedBug(
        "A form that is shown again has the secret in its page.",
        in_page("action.html", '<input type="password" id', '<input type="password" value="{{ value }}" id'),
        "browser/test_event_actions.py::TestSourcesAndForms::test_a_secret_that_was_typed_does_not_come_back",
        is_slow=True,
    ),
    "a delete is offered meanwhile": PlantedBug(
        "A button is offered that the control plane refuses.",
        in_function(
            f"{STEPS}.tenant_steps", 'f"berth delete {name}", deleted or busy', 'f"berth delete {name}", deleted'
        ),
        f"{NEXT}::test_nothing_can_be_done_during_a_delete_and_the_server_agrees",
    ),
    "a retry to a withdrawn release is offered": PlantedBug(
        "A button moves a tenant to a release that is known to be bad.",
        in_function(f"{STEPS}._why_no_retry", 'failed["version"] in withdrawn', "False"),
        f"{NEXT}::test_an_update_to_a_release_that_was_withdrawn_is_not_retried_and_the_server_agrees",
    ),
}
