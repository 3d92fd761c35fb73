"""Planted bugs that cost money: everything works, and each call, row or hour costs more than it has to."""

from __future__ import annotations

from tests.machines import asl
from tests.machines.files import machine
from tests.planted.bugs import Json, PlantedBug, in_function, in_machine, in_page, in_stack, resources

EVENTS = "adapters/events/test_event_costs.py::test_the_requests_of_every_call"
GET_QUEUE = "adapters/handlers/test_get_queue_costs.py"
DELIVERING = "orchestrator.events.delivery.delivering.Delivering"
PUT = "    self._events.put(event, packed, type_index=settings.type_index)\n"


def _project_everything(template: Json) -> None:
    for table in resources(template, "AWS::DynamoDB::Table").values():
        for index in table["Properties"]["GlobalSecondaryIndexes"]:
            index["Projection"] = {"ProjectionType": "ALL"}


def _another_alarm(template: Json) -> None:
    alarms = resources(template, "AWS::CloudWatch::Alarm")
    template["Resources"]["OneMore"] = next(iter(alarms.values()))


def _keep_logs_for_ever(template: Json) -> None:
    for group in resources(template, "AWS::Logs::LogGroup").values():
        del group["Properties"]["RetentionInDays"]


def _through_a_pause(choice: asl.State) -> list[asl.State]:
    return [
        {**each, "Next": "PauseBeforeStart"} if each["Next"] == "StartStack" else each for each in choice["Choices"]
    ]


BUGS = {
    "an event is put twice": PlantedBug(
        "Each accepted event costs a second write, which its condition refuses.",
        in_function("orchestrator.events.accepting.Accepting._keep", PUT, PUT * 2),
        EVENTS,
    ),
    "a first try reads its delivery": PlantedBug(
        "Each first try reads a row that is never there.",
        in_function(
            f"{DELIVERING}.deliver",
            "self._table.delivery(ref) if message.claims else None",
            "self._table.delivery(ref)",
        ),
        EVENTS,
    ),
    "each delivery notes its health": PlantedBug(
        "Each delivery writes the connection, although its health is as it was.",
        in_function(
            f"{DELIVERING}._note_health", "if then != connection.health or draining != connection.draining:", "if then:"
        ),
        EVENTS,
    ),
    "nothing is remembered": PlantedBug(
        "Each event reads its tenant's settings and its key.",
        in_function(
            "orchestrator.events.remembering.Remembered.get", "if now - since < self._seconds", "if now < since"
        ),
        EVENTS,
    ),
    "lists of events are read consistently": PlantedBug(
        "Each page of a list costs twice as many read units.",
        in_function(
            "orchestrator.adapters.dynamodb.event_reads.DynamoEventReads._query",
            "**options,",
            "ConsistentRead=not where.index, **options,",
        ),
        "adapters/events/test_listing.py::test_a_list_is_one_query_and_reads_the_rows_that_an_index_names",
    ),
    "each use of a key is written": PlantedBug(
        "Each accepted event costs a second write, of its key.",
        in_function(
            "orchestrator.adapters.dynamodb.event_configuration.DynamoConfiguration.note",
            " OR last_used_at <= :before)",
            " OR last_used_at <> :before)",
        ),
        "adapters/events/test_configuring.py::TestKeys::test_the_use_of_a_key_is_written_at_most_once_per_hour",
    ),
    "getQueue reads twice": PlantedBug(
        "Each getQueue of a ready tenant costs two reads.",
        in_function(
            "orchestrator.tenants.get_queue.GetQueue._look",
            "metadata = self.reader.metadata(tenant)",
            "metadata = self.reader.metadata(tenant) and self.reader.metadata(tenant)",
        ),
        f"{GET_QUEUE}::test_a_ready_tenant_costs_one_read",
    ),
    "indexes of events have whole rows": PlantedBug(
        "Each event is stored and written three times.",
        in_stack(_project_everything, "BerthEvents"),
        "stacks/test_event_plane.py::test_the_table_has_its_keys_and_two_indexes_of_keys_only",
    ),
    "one alarm more": PlantedBug(
        "The idle control plane costs more than is written down.",
        in_stack(_another_alarm),
        "stacks/test_costs.py::test_the_counts_have_everything_of_the_control_plane_with_a_cost_when_idle",
    ),
    "logs are kept for ever": PlantedBug(
        "The bill for stored logs grows every month.",
        in_stack(_keep_logs_for_ever),
        "stacks/test_control_plane.py::test_logs_are_kept_as_long_as_the_setting_says[control_plane]",
    ),
    "an operation pauses first": PlantedBug(
        "Each create makes a transition more, and waits for nothing.",
        in_machine(
            "create_tenant", "HasBegun", Choices=_through_a_pause(asl.states(machine("create_tenant"))["HasBegun"])
        ),
        "machines/test_outcomes.py::test_the_shortest_path_takes_few_transitions[create_tenant]",
    ),
    "pages ask every second": PlantedBug(
        "An open page of the console asks the API much more often.",
        in_page("layout.html", "every {{ live }}s", "every 1s"),
        "browser/test_costs.py::test_the_requests_of_every_update",
        is_slow=True,
    ),
}
