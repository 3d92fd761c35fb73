"""Reconciliations: their rows, and how the function that runs them is called."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from orchestrator.adapters.dynamodb.reconciliations import LambdaReconciliations, ReconciliationTable
from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.checkpoints import Checkpoint, Phase, Position
from orchestrator.reconciling.fleet_counts import FleetCounts
from orchestrator.reconciling.ports import ReconciliationLedger, SurveyedStack
from orchestrator.reconciling.records import (
    MAX_FINDINGS,
    SETTLING,
    SURVEY,
    Coverage,
    Finding,
    Kind,
    Reconciliation,
    ReconciliationStatus,
    Remedy,
    Spec,
)
from orchestrator.reconciling.surveying import STACKS_PER_CHUNK
from orchestrator.tenants.records import Queue, TenantState
from orchestrator.tenants.stack_ports import Stack
from tests.adapters.conftest import TABLE, client
from tests.fakes import NAMES, NOON, QUEUE, VERSION, stack_arn
from tests.fakes.reconciling import InMemoryReconciliations
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ID = "20261116-120000-ab12"
ASKED = Reconciliation(ID, "ada", Spec(), ReconciliationStatus.PENDING, NOON, NOON)
FOUND = Finding(Kind.ORPHAN_STACK, "globex", "it has no records, but its stack is CREATE_COMPLETE", Remedy.CREATE)
TOLD = replace(
    ASKED,
    spec=Spec(survey=False, detect_drift=True, repair=False, dry_run=True),
    status=ReconciliationStatus.INCOMPLETE,
    updated_at=NOON + timedelta(seconds=9),
    coverage=Coverage(operations=1, tenants=2, stacks=3, all_stacks=4, drift=5),
    counts={Kind.ORPHAN_STACK: 2, Kind.DRIFTED: 300},
    findings=(
        FOUND,
        replace(FOUND, kind=Kind.DRIFTED, remedy=Remedy.NONE, advice='See "what" differs: é\n\0\ud800'),
        replace(FOUND, result="CREATE 0.1.0 ordered: arn", repaired=True),
    ),
    repaired=1,
    stuck=6,
    reason="The time ran out before everything was checked.",
)


@pytest.fixture
def reconciliations(rows: DynamoDBClient | None) -> ReconciliationLedger:
    return ReconciliationTable(rows, TABLE) if rows else InMemoryReconciliations()


@pytest.mark.parametrize("reconciliation", [ASKED, TOLD], ids=["asked for", "told of"])
def test_a_reconciliation_is_read_as_it_was_recorded(
    reconciliations: ReconciliationLedger, reconciliation: Reconciliation
) -> None:
    reconciliations.record_reconciliation(reconciliation)
    assert reconciliations.reconciliation(ID) == reconciliation


def test_every_kind_and_remedy_is_stored(reconciliations: ReconciliationLedger) -> None:
    findings = tuple(replace(FOUND, kind=kind, remedy=remedy) for kind in Kind for remedy in Remedy)
    recorded = replace(ASKED, counts=dict.fromkeys(Kind, 1), findings=findings)
    reconciliations.record_reconciliation(recorded)
    assert reconciliations.reconciliation(ID) == recorded


@pytest.mark.parametrize("status", ReconciliationStatus)
def test_every_status_is_stored(reconciliations: ReconciliationLedger, status: ReconciliationStatus) -> None:
    recorded = replace(ASKED, status=status)
    reconciliations.record_reconciliation(recorded)
    assert reconciliations.reconciliation(ID) == recorded


def test_a_record_with_the_same_id_is_replaced(reconciliations: ReconciliationLedger) -> None:
    for each in (TOLD, ASKED):
        reconciliations.record_reconciliation(each)
    assert reconciliations.reconciliation(ID) == ASKED


def test_each_reconciliation_has_its_own_row(reconciliations: ReconciliationLedger) -> None:
    settling, survey = (replace(ASKED, id=name, reason=name) for name in (SETTLING, SURVEY))
    for each in (settling, survey, ASKED):
        reconciliations.record_reconciliation(each)
    assert [reconciliations.reconciliation(each) for each in (SETTLING, SURVEY, ID)] == [settling, survey, ASKED]


def test_a_reconciliation_of_chosen_tenants_is_read_as_it_was_recorded(reconciliations: ReconciliationLedger) -> None:
    chosen = replace(ASKED, spec=Spec(only=["acme", "globex"]))
    reconciliations.record_reconciliation(chosen)
    assert reconciliations.reconciliation(ID) == chosen


def test_requested_reconciliations_are_listed_newest_first_without_other_rows(
    reconciliations: ReconciliationLedger,
) -> None:
    ids = [f"20261116-12000{number}-ab12" for number in range(4)]
    for each in (*ids, "survey", "settling"):
        reconciliations.record_reconciliation(replace(TOLD, id=each))
    saved = Checkpoint(replace(TOLD, id=ids[3]), Position(Phase.TENANTS), NOON)
    assert reconciliations.save_checkpoint(saved)
    reconciliations.store_stacks(saved.reconciliation, "a-list", 0, [])
    assert [each.id for each in reconciliations.requested_reconciliations(limit=3)] == ids[:0:-1]


def test_an_unknown_reconciliation_is_none(reconciliations: ReconciliationLedger) -> None:
    assert reconciliations.reconciliation(ID) is None


class TestTheRow:
    @pytest.fixture
    def table(self, dynamodb: DynamoDBClient) -> ReconciliationTable:
        return ReconciliationTable(dynamodb, TABLE)

    def test_reconciliations_are_not_listed_with_tenants(
        self, table: ReconciliationTable, dynamodb: DynamoDBClient
    ) -> None:
        table.record_reconciliation(TOLD)
        (row,) = dynamodb.scan(TableName=TABLE)["Items"]
        assert (row["pk"]["S"], row["sk"]["S"], row["Status"]["S"]) == ("RECONCILIATION", ID, "INCOMPLETE")
        assert row["UpdatedAt"]["S"] == "2026-11-16T12:00:09.000Z"
        assert "ListingKey" not in row

    def test_long_ids_leave_room_for_other_findings(self, table: ReconciliationTable) -> None:
        """Another system may have chosen the keys of rows."""
        long = [replace(FOUND, subject=f"{number:02}" + "\x01" * 2_000) for number in range(MAX_FINDINGS - 1)]
        table.record_reconciliation(replace(ASKED, findings=(*long, replace(FOUND, subject="acme"))))
        read = present(table.reconciliation(ID))
        assert len(read.findings) == MAX_FINDINGS
        assert read.findings[-1].subject == "acme"

    @pytest.mark.parametrize("letter", ["x", '"', "é", "\N{SAUROPOD}", "\0"], ids=ascii)
    def test_the_maximum_of_findings_fits_one_row(
        self, table: ReconciliationTable, dynamodb: DynamoDBClient, letter: str
    ) -> None:
        text = letter * 5_000
        longest = replace(FOUND, subject="s" * 128, detail=text, advice=text, result=text)
        recorded = replace(ASKED, counts={Kind.ORPHAN_STACK: 9_999}, findings=(longest,) * MAX_FINDINGS)
        table.record_reconciliation(recorded)
        (row,) = dynamodb.scan(TableName=TABLE)["Items"]
        size = sum(len(name) + len(next(iter(value.values())).encode()) for name, value in row.items())
        assert size < 400_000
        read = present(table.reconciliation(ID))
        assert read.total == 9_999
        assert read.findings
        assert {finding.detail for finding in read.findings} == {letter * 1_000}

    def test_findings_of_usual_length_are_all_kept(self, table: ReconciliationTable) -> None:
        usual = replace(FOUND, detail="d" * 400, advice="a" * 400, result="r" * 400)
        recorded = replace(ASKED, findings=(usual,) * MAX_FINDINGS)
        table.record_reconciliation(recorded)
        assert table.reconciliation(ID) == recorded

    def test_reads_are_consistent(self, table: ReconciliationTable, dynamodb: DynamoDBClient) -> None:
        asked = []
        event = "provide-client-params.dynamodb.GetItem"
        dynamodb.meta.events.register(event, lambda params, **_: asked.append(params["ConsistentRead"]), "look")
        try:
            table.reconciliation(ID)
        finally:
            dynamodb.meta.events.unregister(event, unique_id="look")
        assert asked == [True]

    @pytest.mark.parametrize(("code", "error"), [("ThrottlingException", Throttled), ("AccessDenied", ClientError)])
    def test_a_refused_read_or_write_is_an_error(self, code: str, error: type[Exception]) -> None:
        with Stubber(client("dynamodb")) as dynamodb:
            for method in ("put_item", "get_item"):
                dynamodb.add_client_error(method, code)
            table = ReconciliationTable(client("dynamodb"), TABLE)
            with pytest.raises(error):
                table.record_reconciliation(ASKED)
            with pytest.raises(error):
                table.reconciliation(ID)


class TestStarting:
    @pytest.fixture
    def lambdas(self) -> Iterator[Stubber]:
        """Lambda with scripted answers."""
        with Stubber(client("lambda")) as stubber:
            yield stubber
            stubber.assert_no_pending_responses()

    @pytest.fixture
    def starter(self) -> LambdaReconciliations:
        return LambdaReconciliations(lambda: client("lambda"), lambda: "reconcile")

    def test_the_function_is_invoked_asynchronously(self, starter: LambdaReconciliations, lambdas: Stubber) -> None:
        sent = {"FunctionName": "reconcile", "InvocationType": "Event", "Payload": json.dumps({"reconciliationId": ID})}
        lambdas.add_response("invoke", {"StatusCode": 202}, sent)
        starter.start_reconciliation(ID)

    @pytest.mark.parametrize(
        ("code", "error"),
        [("TooManyRequestsException", Throttled), ("ResourceNotFoundException", ClientError)],
    )
    def test_a_refused_invocation_is_an_error(
        self, starter: LambdaReconciliations, lambdas: Stubber, code: str, error: type[Exception]
    ) -> None:
        lambdas.add_client_error("invoke", code)
        with pytest.raises(error):
            starter.start_reconciliation(ID)

    def test_without_a_start_neither_client_nor_name_is_needed(self) -> None:
        def unknown() -> str:
            raise AssertionError

        LambdaReconciliations(unknown, unknown)  # type: ignore[arg-type]


def test_the_counts_of_the_fleet_are_kept(reconciliations: ReconciliationLedger) -> None:
    assert reconciliations.fleet_counts() is None
    first = FleetCounts(NOON, {"": {TenantState.PROVISIONING: 1}, VERSION: {TenantState.READY: 7}})
    reconciliations.keep_fleet_counts(first)
    assert reconciliations.fleet_counts() == first
    later = FleetCounts(NOON + timedelta(minutes=5), {})
    reconciliations.keep_fleet_counts(later)
    assert reconciliations.fleet_counts() == later


def test_only_a_requested_reconciliation_expires(dynamodb: DynamoDBClient) -> None:
    table = ReconciliationTable(dynamodb, TABLE)
    for each in (ID, SETTLING, SURVEY):
        table.record_reconciliation(replace(ASKED, id=each))
    expire = {row["sk"]["S"]: row["ttl"] for row in dynamodb.scan(TableName=TABLE)["Items"] if "ttl" in row}
    assert expire == {ID: {"N": str(int((NOON + timedelta(days=90)).timestamp()))}}


# The positions of surveys that are not finished


A_DAY = timedelta(days=1)
A_POSITION = Position(
    Phase.TENANTS,
    "1.0.0#acme",
    TenantState.UPDATE_FAILED,
    "list-1",
    1,
    2,
    bytes([0, 1, 2] * 40_000),
    {"detection": "arn:stack"},
)


def a_checkpoint(**more: Any) -> Checkpoint:
    return replace(Checkpoint(replace(TOLD, status=ReconciliationStatus.RUNNING), A_POSITION, NOON), **more)


@pytest.fixture
def ledger(rows: DynamoDBClient | None) -> ReconciliationLedger:
    return ReconciliationTable(rows, TABLE) if rows else InMemoryReconciliations()


class TestCheckpoints:
    def test_a_position_is_read_as_it_was_saved(self, ledger: ReconciliationLedger) -> None:
        assert ledger.checkpoint(ID) is None
        assert ledger.unfinished_surveys() == frozenset()
        assert ledger.save_checkpoint(a_checkpoint())
        assert ledger.checkpoint(ID) == a_checkpoint(revision=1)
        assert ledger.unfinished_surveys() == {ID}
        assert ledger.reconciliation(ID) is None

    def test_only_one_of_two_functions_continues_a_survey(self, ledger: ReconciliationLedger) -> None:
        ledger.save_checkpoint(a_checkpoint())
        assert ledger.save_checkpoint(a_checkpoint(revision=1, claimed_until=NOON + A_DAY))
        assert not ledger.save_checkpoint(a_checkpoint(revision=1))
        saved = ledger.checkpoint(ID)
        assert saved is not None
        assert (saved.revision, saved.claimed_until) == (2, NOON + A_DAY)

    def test_only_one_of_two_functions_begins_a_survey(self, ledger: ReconciliationLedger) -> None:
        assert ledger.save_checkpoint(a_checkpoint())
        other = a_checkpoint(position=replace(A_POSITION, list_id="list-2"))
        assert not ledger.save_checkpoint(other)
        assert ledger.checkpoint(ID) == a_checkpoint(revision=1)

    def test_a_survey_that_goes_on_is_unfinished_though_another_function_has_ended_it(
        self, ledger: ReconciliationLedger
    ) -> None:
        ledger.save_checkpoint(a_checkpoint())
        ledger.end_survey(ID)
        assert ledger.save_checkpoint(a_checkpoint(revision=1))
        assert ledger.unfinished_surveys() == {ID}

    def test_the_next_survey_with_the_same_id_replaces_the_position(self, ledger: ReconciliationLedger) -> None:
        ledger.save_checkpoint(a_checkpoint())
        began = a_checkpoint().reconciliation.started_at + A_DAY
        later = a_checkpoint(reconciliation=replace(a_checkpoint().reconciliation, started_at=began))
        assert ledger.save_checkpoint(later)
        assert not ledger.save_checkpoint(a_checkpoint(revision=1))

    def test_a_survey_that_has_ended_is_not_unfinished(self, ledger: ReconciliationLedger) -> None:
        ledger.save_checkpoint(a_checkpoint())
        ledger.end_survey(ID)
        ledger.end_survey(ID)
        assert ledger.unfinished_surveys() == frozenset()

    def test_stacks_are_stored_in_parts(self, ledger: ReconciliationLedger) -> None:
        stack = Stack(stack_arn(), "CREATE_COMPLETE", "", "acme", QUEUE, "1.0.0", ours=True)
        of_others = Stack("arn:other", "UPDATE_COMPLETE", "", None, None, None, ours=False)
        one, two = [SurveyedStack("berth-tenant-acme", stack)], [SurveyedStack("other", of_others)] * 2
        reconciliation = a_checkpoint().reconciliation
        ledger.store_stacks(reconciliation, "list-1", 0, one)
        ledger.store_stacks(reconciliation, "list-1", 1, two)
        ledger.store_stacks(reconciliation, "list-2", 0, two)
        assert [list(ledger.stored_stacks(reconciliation, "list-1", number)) for number in (0, 1)] == [one, two]
        with pytest.raises(LookupError):
            ledger.stored_stacks(reconciliation, "list-1", 2)

    def test_a_full_part_fits_into_a_row(self, dynamodb: DynamoDBClient) -> None:
        ledger, some = ReconciliationTable(dynamodb, TABLE), Random(1)
        stacks = []
        for _ in range(STACKS_PER_CHUNK):
            tenant = TenantId.parse(str(UUID(int=some.getrandbits(128))))
            name = f"{NAMES.stack_of(tenant)}-InboundQueue-{some.getrandbits(60):X}"
            queue = Queue(f"arn:aws:sqs:eu-west-1:123456789012:{name}", f"https://sqs.eu-west-1.amazonaws.com/1/{name}")
            stack_id = f"{stack_arn(tenant)}/{UUID(int=some.getrandbits(128))}"
            stacks.append(
                SurveyedStack(name, Stack(stack_id, "UPDATE_COMPLETE", "", str(tenant), queue, "1.0.0", ours=True))
            )
        ledger.store_stacks(a_checkpoint().reconciliation, "list-1", 0, stacks)
        (row,) = dynamodb.scan(TableName=TABLE)["Items"]
        assert len(row["Stacks"]["B"]) < 200_000
        assert "ttl" in row
