"""Planted bugs in the command line, and in what the API answers."""

from __future__ import annotations

from tests.planted.bugs import PlantedBug, in_function

JSON = "unit/cli/test_json_output.py"
ORDERS = "unit/cli/test_orders.py::TestUpgrade"
GOLDEN = "transcripts/test_transcripts.py::test_a_golden_file_is_what_the_product_says"
REPORT = "orchestrator.cli.invocation.Invocation.reporting_errors"

BUGS = {
    "a failure exits with 0": PlantedBug(
        "A script goes on although its operation has failed.",
        in_function(REPORT, "raise typer.Exit(failure.code) from error", "raise typer.Exit(0) from error"),
        f"{GOLDEN}[commands/errors.txt]",
    ),
    "a refusal looks like success": PlantedBug(
        "A script takes an order that was not confirmed for one that was accepted.",
        in_function(
            "orchestrator.cli.errors._classify", "return ExitCode.REFUSED, str(error)", "return ExitCode.OK, str(error)"
        ),
        f"{ORDERS}::test_a_replacement_is_confirmed_by_the_tenants_id",
    ),
    "notes go to stdout": PlantedBug(
        "A program that reads JSON reads a note.",
        in_function("orchestrator.cli.render.note", "stderr()", "stdout()"),
        f"{JSON}::test_a_document_is_as_documented",
    ),
    "errors go to stdout": PlantedBug(
        "A program that reads JSON reads an error message behind it.",
        in_function("orchestrator.cli.render.complain", "stderr()", "stdout()"),
        f"{JSON}::test_every_error_has_the_same_shape",
    ),
    "errors have no document": PlantedBug(
        "A program that asked for JSON gets nothing.",
        in_function(REPORT, "if as_json:", "if False:"),
        f"{JSON}::test_every_error_has_the_same_shape",
    ),
    "a usage error has no document": PlantedBug(
        "A program that asked for JSON gets nothing.",
        in_function("orchestrator.cli.app._usage_errors_as_json", "if as_json and", "if False and"),
        f"{JSON}::test_every_error_has_the_same_shape",
    ),
    "a traceback is always shown": PlantedBug(
        "Operators get forty lines in place of a sentence.",
        in_function(REPORT, "if self.debug:", "if True:"),
        f"{GOLDEN}[commands/errors.txt]",
    ),
    "the terminal obeys tenants": PlantedBug(
        "A reason that somebody has written moves the cursor or rewrites the clipboard.",
        in_function("orchestrator.cli.escaping.escaped", "if text.isprintable():", "if True:"),
        "unit/cli/test_escaping.py::test_every_function_that_prints_escapes",
    ),
    "any answer confirms": PlantedBug(
        "A tenant is deleted although the operator typed another id.",
        in_function("orchestrator.cli.invocation.Invocation.confirm", " != answer:", ' == "":'),
        f"{ORDERS}::test_a_replacement_is_confirmed_by_the_tenants_id",
    ),
    "without a terminal nothing is confirmed": PlantedBug(
        "A script deletes a tenant with its messages without --yes.",
        in_function("orchestrator.cli.invocation.Invocation.confirm", "raise InvalidRequest(", "return print("),
        f"{GOLDEN}[commands/upgrade.txt]",
    ),
    "lists have secrets": PlantedBug(
        "Each key that may read sees the secret that signs deliveries.",
        in_function(
            "orchestrator.api.connection_answers._connection",
            '"signed":',
            '"secret": str(connection.secret), "signed":',
        ),
        "adapters/events/test_connection_functions.py::test_a_connection_needs_only_a_name",
    ),
    "answers with secrets are cached": PlantedBug(
        "A proxy keeps a tenant's key.",
        in_function("orchestrator.api.event_configuration_answers.secret_response", "no-store", "private"),
        "adapters/events/test_connection_functions.py::test_a_secret_is_shown_once_and_not_to_be_cached",
    ),
}
