"""Planted bugs in the state machines."""

from __future__ import annotations

from tests.machines import asl
from tests.machines.files import TURN, machine
from tests.planted.bugs import PlantedBug, in_machine

CHECKS = "machines/test_machines.py"
OUTCOMES = "machines/test_outcomes.py"
COPIES = "machines/test_copies.py"


def state(part: str, name: str) -> asl.State:
    return asl.states(machine(part))[name]


def retry_everything(part: str, name: str) -> list[asl.State]:
    return [{**each, "ErrorEquals": ["States.ALL"]} for each in state(part, name)["Retry"][-1:]]


BUGS = {
    "a fault in Begin is not caught": PlantedBug(
        "An operation that dies at its beginning keeps its tenant locked until the reconciler comes.",
        in_machine("create_tenant", "Begin", Catch=None),
        f"{CHECKS}::test_a_fault_fails_the_execution[create_tenant]",
    ),
    "a fault in StartStack ends green": PlantedBug(
        "An update whose stack could not be changed is recorded as successful.",
        in_machine("update_tenant", "StartStack", Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Finish"}]),
        f"{CHECKS}::test_a_fault_fails_the_execution[update_tenant]",
    ),
    "a failed delete ends green": PlantedBug(
        "The execution succeeds although the failure was recorded.",
        in_machine("delete_tenant", "Failed", Type="Succeed"),
        f"{CHECKS}::test_only_the_last_state_ends_the_execution_successfully[delete_tenant]",
    ),
    "InspectStack has no timeout": PlantedBug(
        "A function that hangs holds its tenant for the whole life of the execution.",
        in_machine("create_tenant", "InspectStack", TimeoutSeconds=None),
        f"{CHECKS}::test_the_machine_passes_the_check[create_tenant-tasks_time_out]",
    ),
    "AwaitStack retries its own timeout": PlantedBug(
        "A wake-up that was lost is waited for again and again, and nobody looks at the stack.",
        in_machine("update_tenant", "AwaitStack", Retry=retry_everything("update_tenant", "AwaitStack")),
        f"{CHECKS}::test_the_machine_passes_the_check[update_tenant-tasks_retry]",
    ),
    "Finish gives up when it is throttled": PlantedBug(
        "An operation that has succeeded is recorded as failed in a busy minute.",
        in_machine("create_tenant", "Finish", Retry=retry_everything("create_tenant", "Finish")),
        f"{COPIES}::test_the_last_steps_of_an_operation_retry_throttling_for_a_long_time",
    ),
    "a turn starts its update again after it failed": PlantedBug(
        "A failed update of a rollout is started again without a decision.",
        in_machine(
            TURN, "Upgrade", Retry=[{**state(TURN, "Upgrade")["Retry"][0], "ErrorEquals": ["States.TaskFailed"]}]
        ),
        f"{CHECKS}::test_the_machine_passes_the_check[rollout/RunStage-tasks_retry]",
    ),
    "a pause is left out": PlantedBug(
        "A create that has to wait asks again without a pause, and pays for each transition.",
        in_machine("create_tenant", "HasBegun", Default="Begin"),
        f"{CHECKS}::test_the_machine_passes_the_check[create_tenant-loops_wait]",
    ),
    "a deleted tenant goes on to wait": PlantedBug(
        "A delete never ends, because the answer that the stack has gone is not read.",
        in_machine("delete_tenant", "HasSettled", Choices=state("delete_tenant", "HasSettled")["Choices"][1:]),
        f"{OUTCOMES}::test_an_outcome_leads_to[delete_tenant-HasSettled-gone-Finish]",
    ),
    "AwaitDrain leads to the end": PlantedBug(
        "A delete is recorded as done while there are messages.",
        in_machine("delete_tenant", "AwaitDrain", Next="Finish"),
        f"{OUTCOMES}::test_a_state_leads_to[delete_tenant-AwaitDrain-StartStack]",
    ),
    "a failed turn is not recorded": PlantedBug(
        "A tenant that failed in a rollout counts neither as failed nor as moved.",
        in_machine(TURN, "Admit", Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Done"}]),
        f"{CHECKS}::test_a_fault_in_a_child_is_recorded[rollout/RunStage]",
    ),
    "the map ends with its first failure": PlantedBug(
        "One tenant that fails stops all others of its stage in the middle.",
        in_machine("rollout", "RunStage", ToleratedFailurePercentage=0),
        f"{CHECKS}::test_the_machine_passes_the_check[rollout-maps_are_bounded]",
    ),
    "a create calls the function of another state": PlantedBug(
        "A create that finishes runs the function that records failures.",
        in_machine("create_tenant", "Finish", Arguments=state("create_tenant", "RecordFailure")["Arguments"]),
        f"{CHECKS}::test_a_state_calls_the_function_of_its_name[create_tenant]",
    ),
}
