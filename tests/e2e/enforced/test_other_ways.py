"""With the deployed permissions, failures are recorded, and less common operations work."""

from __future__ import annotations

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.releases import Template
from orchestrator.tenants.records import Status
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.fleet import a_fleet, over, stages, started
from tests.e2e.operators import a_release, call, create, delete, ended, retry, upgrade
from tests.e2e.test_tenant_queue import Team, example
from tests.e2e.turns import at_most_at_once, turns_of
from tests.present import present

FLEET = "other-ways"
ALARM = "of-other-ways"


def _broken(template: Template) -> None:
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 999_999


def _slower(template: Template) -> None:
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 78


def _is_closed(berth: Deployed, tenant: TenantId) -> bool | None:
    unfinished = [audit for audit in berth.table.audits(tenant) if audit.status is Status.STARTED]
    return True if not unfinished and berth.table.lock(tenant) is None else None


def _has_queue(berth: Deployed, tenant: TenantId) -> bool | None:
    metadata = berth.table.metadata(tenant)
    return True if metadata is not None and metadata.queue is not None else None


def test_an_update_that_fails_is_recorded_and_retried(enforced: Enforced) -> None:
    root, operator = enforced.root, enforced.operator
    tenant = TenantId("update-fails")
    assert ended(root, create(operator, tenant)) == "SUCCEEDED"
    broken = a_release(root, "1.94.0", _broken)
    assert ended(root, upgrade(operator, tenant, broken)) == "FAILED"
    assert ended(root, retry(operator, tenant)) == "FAILED"
    assert ended(root, delete(operator, tenant)) == "SUCCEEDED"
    assert enforced.denials() == []


def test_an_operation_whose_execution_is_aborted_is_closed(enforced: Enforced) -> None:
    root, operator = enforced.root, enforced.operator
    tenant = TenantId("create-dies")
    with root.held_up("start_stack"):
        execution = create(operator, tenant).body["execution"]
        eventually(lambda: root.table.lock(tenant), what="the create has begun")
        root.client("stepfunctions").stop_execution(executionArn=execution)
    eventually(lambda: _is_closed(root, tenant), what="the create is closed")
    assert enforced.denials() == []


def test_an_operation_whose_execution_is_aborted_when_its_stack_is_complete_has_succeeded(enforced: Enforced) -> None:
    root, operator = enforced.root, enforced.operator
    tenant = TenantId("create-dies-late")
    with root.held_up("inspect_stack"):
        execution = create(operator, tenant).body["execution"]
        # The tenant's stack records its queue itself.
        eventually(lambda: _has_queue(root, tenant), what="the stack has its queue")
        eventually(lambda: root.stack(tenant)["StackStatus"] == "CREATE_COMPLETE" or None, what="the stack is complete")
        root.client("stepfunctions").stop_execution(executionArn=execution)
    eventually(lambda: _is_closed(root, tenant), what="the create is closed")
    assert root.ask(tenant).status == 200
    assert enforced.denials() == []


def test_creates_that_are_requested_at_once_wait_for_their_turn_and_all_succeed(enforced: Enforced) -> None:
    root, operator = enforced.root, enforced.operator
    tenants = [TenantId(f"in-a-storm-{number}") for number in range(4)]
    with at_most_at_once(root, 1):
        # The create that has the turn keeps it meanwhile.
        with root.held_up("start_stack"):
            asked = [create(operator, tenant) for tenant in tenants]
            waiting = eventually(
                lambda: found if len(found := _waiting(root, tenants)) == len(tenants) - 1 else None,
                what="all creates but one wait for their turn",
            )
            answer = root.ask(waiting[-1])
        assert (answer.status, answer.body["state"]) == (202, "PROVISIONING")
        assert answer.body["retryAfterSeconds"] >= answer.body["waitSeconds"] > 0
        assert [ended(root, each) for each in asked] == ["SUCCEEDED"] * len(tenants)
    assert present(turns_of(root).turns()).holders == {}
    assert turns_of(root).first_ticket() is None
    for tenant in tenants:
        assert root.ask(tenant).status == 200
        assert ended(root, delete(operator, tenant)) == "SUCCEEDED"
    assert enforced.denials() == []


def _waiting(berth: Deployed, tenants: list[TenantId]) -> list[TenantId]:
    return [tenant for tenant in tenants if any(audit.is_waiting for audit in berth.table.audits(tenant))]


def test_a_rollout_has_a_dry_run_and_waits_for_approval_and_its_alarm(enforced: Enforced) -> None:
    root, operator = enforced.root, enforced.operator
    a_fleet(root, FLEET, 2)
    root.client("cloudwatch").put_metric_alarm(
        AlarmName=ALARM,
        Namespace="Other",
        MetricName="Ways",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )
    release = a_release(root, "1.95.0", _slower)
    assert over(root, started(operator, FLEET, version=release, dryRun=True))["status"] == "SUCCEEDED"
    staged = stages("1", "rest")
    staged[0] |= {"approval": True, "alarm": ALARM, "bakeSeconds": 1}
    before = len(enforced.decisions())
    rollout = started(operator, FLEET, version=release, stages=staged)

    def waits() -> bool | None:
        # Wait for the row by which the rollout is resumed: the stage reports a moment earlier that it waits.
        requests = [each for each in enforced.decisions()[before:] if "AwaitOperator" in each.principal]
        return True if "dynamodb:PutItem" in {each.action for each in requests} else None

    assert eventually(waits, what="the rollout waits for approval")
    assert call(operator, "POST", f"/rollouts/{rollout}/approve", body={"stage": 1}).status == 202
    assert over(root, rollout)["status"] == "SUCCEEDED"
    assert enforced.denials() == []


def test_a_diagnosis_and_a_survey_with_drift_detection_work(enforced: Enforced) -> None:
    operator = enforced.operator
    assert ended(enforced.root, create(operator, TenantId("looked-at"))) == "SUCCEEDED"
    assert call(operator, "GET", "/diagnosis").status == 200
    assert call(operator, "GET", "/operations").status == 200
    assert call(operator, "GET", "/reconciliations").status == 200
    asked = call(operator, "POST", "/reconciliations", body={"detectDrift": True})
    assert asked.status == 202, asked.body

    def is_over() -> bool | None:
        status = call(operator, "GET", f"/reconciliations/{asked.body['reconciliationId']}").body["status"]
        return True if status not in ("PENDING", "RUNNING") else None

    assert eventually(is_over, what="the survey has ended")
    assert enforced.denials() == []


def test_a_team_can_have_a_queue_in_its_own_stack(enforced: Enforced) -> None:
    team = Team(enforced.root, "team-of-other-ways")
    assert team.deploy(example("of-another-way")) == "CREATE_COMPLETE"
    team.delete()
    assert enforced.denials() == []
