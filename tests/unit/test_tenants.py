"""Tenant ids: the allow-list, and derived names, which are never too long, ambiguous or another tenant's."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.applying import key_of
from orchestrator.common.errors import InvalidTenantId, StackNotOurs
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN, TenantId
from orchestrator.tenants.records import Attempt, Operation, Status, TenantState
from orchestrator.tenants.writes import AuditKey
from tests.fakes import NAMES, NOON

LONGEST_ID = TenantId.parse("x" * TENANT_ID_MAX_LENGTH)
LONGEST_ATTEMPTS = [Attempt(LONGEST_ID, operation, "9999.9999.9999", 99_999) for operation in Operation]

tenant_ids = st.one_of(
    st.from_regex(TENANT_ID_PATTERN, fullmatch=True).filter(lambda text: not text.endswith("\n")),
    # So short and so alike that pairs of them are often equal, or nearly so.
    st.from_regex(r"[aA1](?:[aA1-]{0,2}[aA1])?", fullmatch=True),
)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "7",
        "acme",
        "ACME",
        "a-b",
        "a--b",
        "032400-000000-0000-0002",
        "123e4567-e89b-12d3-a456-426614174000",
        "x" * TENANT_ID_MAX_LENGTH,
    ],
)
def test_letters_digits_and_inner_dashes_are_accepted(text: str) -> None:
    assert TenantId.parse(text).value == text


@pytest.mark.parametrize(
    "text",
    [
        "#",
        "acme#METADATA",
        "/",
        "a/b",
        "..",
        "a.b",
        "a b",
        " acme",
        "acme ",
        "a_b",
        "a%2Fb",
        "*",
        "a:b",
        "-acme",
        "acme-",
        "-",
        "acme\n",
        "\nacme",
        "ac\nme",
        "acme\r",
        "acme\x00",
        "\u0661\u0662\u0663",  # digits, but Arabic ones
        "acm\u00e9",
        "\u0430\u0441me",  # looks like acme, but is Cyrillic
        "\uff41\uff43\uff4d\uff45",  # acme in full width
        "acme\u200b",  # ends in a space of no width
        "\u017f",  # an ASCII letter once case is ignored
        "\ud800",
        "x" * (TENANT_ID_MAX_LENGTH + 1),
        "x" * 10_000,
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidTenantId):
        TenantId.parse(text)


def test_an_empty_id_is_refused_and_called_empty() -> None:
    with pytest.raises(InvalidTenantId, match="empty"):
        TenantId.parse("")


@pytest.mark.parametrize(
    ("value", "called"),
    [(None, "null"), (True, "a boolean"), (7, "a number"), (0.5, "a number"), (["acme"], "a list"), ({}, "an object")],
)
def test_a_value_that_is_not_a_string_is_refused_with_its_json_type(value: object, called: str) -> None:
    with pytest.raises(InvalidTenantId, match=f"not {called}"):
        TenantId.parse(value)


def test_a_refusal_of_a_long_id_does_not_repeat_it() -> None:
    with pytest.raises(InvalidTenantId) as refused:
        TenantId.parse("x" * 10_000)
    assert len(str(refused.value)) < 200


@given(st.text())
def test_a_refusal_is_plain_ascii_whatever_was_asked_for(text: str) -> None:
    with pytest.raises(InvalidTenantId) as refused:
        TenantId.parse(f"#{text}")
    assert str(refused.value).isascii()


@given(tenant_ids)
def test_the_pattern_that_is_given_to_others_means_the_same(text: str) -> None:
    assert TenantId.parse(text).value == text


def test_derived_names_stay_what_they_always_were() -> None:
    tenant = TenantId.parse("acme")
    attempt = Attempt(tenant, Operation.CREATE, "0.1.0", 1)
    assert NAMES.stack_of(tenant) == "berth-tenant-acme-822b33ad"
    assert attempt.name == "create-acme-822b33ad-0.1.0-1"
    assert attempt.client_token == "create-acme-822b33ad-0-1-0-1"


def test_the_longest_stack_name_fits_cloudformation() -> None:
    assert len(NAMES.stack_of(LONGEST_ID)) <= 128
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", NAMES.stack_of(LONGEST_ID))


@given(tenant_ids)
def test_every_stack_name_is_in_cloudformations_alphabet(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,127}", NAMES.stack_of(TenantId.parse(text)))


@pytest.mark.parametrize("attempt", LONGEST_ATTEMPTS, ids=lambda attempt: attempt.operation)
def test_the_longest_execution_name_fits_step_functions(attempt: Attempt) -> None:
    assert len(attempt.name) <= 80
    assert re.fullmatch(r"[A-Za-z0-9.-]+", attempt.name)


@pytest.mark.parametrize("suffix", ["", "-create", "-delete", "-delete-99", "-update", "-update-undo-99"])
@pytest.mark.parametrize("attempt", LONGEST_ATTEMPTS, ids=lambda attempt: attempt.operation)
def test_the_longest_client_token_fits_cloudformation_also_as_the_name_of_a_change_set(
    attempt: Attempt, suffix: str
) -> None:
    token = attempt.client_token + suffix
    assert len(token) <= 128
    assert re.fullmatch(r"[a-zA-Z][-a-zA-Z0-9]*", token)


@pytest.mark.parametrize("attempt", LONGEST_ATTEMPTS, ids=lambda attempt: attempt.operation)
def test_the_longest_keys_fit_dynamodb(attempt: Attempt) -> None:
    history = keys.history_key(attempt.tenant, NOON, f"{attempt.name}#{Status.SUCCESS}", {})
    for key in (key_of(AuditKey.of(attempt)), history):
        assert len(key["pk"]["S"].encode()) <= 2_048
        assert len(key["sk"]["S"].encode()) <= 1_024
    _, listed = keys.listed_tenant(attempt.tenant, TenantState.UPDATE_FAILED, attempt.version)
    assert len(listed.encode()) <= 1_024


@pytest.mark.parametrize(("one", "other"), [*combinations(["acme", "Acme", "ACME", "aCME"], 2)])
def test_ids_that_differ_only_by_case_have_names_that_differ_without_regard_to_case(one: str, other: str) -> None:
    first, second = TenantId.parse(one), TenantId.parse(other)
    assert NAMES.stack_of(first).lower() != NAMES.stack_of(second).lower()
    assert Attempt(first, Operation.CREATE, "0.1.0", 1).name.lower() != (
        Attempt(second, Operation.CREATE, "0.1.0", 1).name.lower()
    )


@given(tenant_ids, tenant_ids)
def test_no_two_ids_share_a_name_that_is_derived_from_them(one: str, other: str) -> None:
    first, second = TenantId.parse(one), TenantId.parse(other)
    same = one == other
    assert (NAMES.stack_of(first) == NAMES.stack_of(second)) == same
    assert (keys.tenant_pk(first) == keys.tenant_pk(second)) == same
    assert (keys.history_pk(first) == keys.history_pk(second)) == same
    assert keys.history_pk(first) != keys.tenant_pk(second)
    for version in ("0.1.0", None):
        listed = [keys.listed_tenant(tenant, TenantState.READY, version) for tenant in (first, second)]
        assert (listed[0] == listed[1]) == same


numbers = st.sampled_from([1, 11, 111]) | st.integers(0, 9_999)
versions = st.tuples(numbers, numbers, numbers).map(lambda parts: ".".join(map(str, parts)))
attempts = st.builds(
    Attempt,
    tenant=tenant_ids.map(TenantId.parse),
    operation=st.sampled_from(Operation),
    version=versions,
    number=st.sampled_from([1, 11, 111]) | st.integers(1, 99_999),
)


@given(attempts, attempts)
def test_no_two_attempts_share_an_execution_name_or_a_client_token(one: Attempt, other: Attempt) -> None:
    """A delete has no version: whichever version of the code is asked for it, it is the same attempt."""
    same = _without_the_version_of_a_delete(one) == _without_the_version_of_a_delete(other)
    assert (one.name == other.name) == same
    assert (one.client_token == other.client_token) == same


def _without_the_version_of_a_delete(attempt: Attempt) -> Attempt:
    return replace(attempt, version="") if attempt.operation is Operation.DELETE else attempt


@given(tenant_ids)
def test_an_id_that_continues_another_id_or_its_digest_is_still_another_tenant(text: str) -> None:
    tenant = TenantId.parse(text)
    for longer in (f"{text}-1", f"{text}-METADATA", tenant.slug):
        if len(longer) > TENANT_ID_MAX_LENGTH:
            continue
        other = TenantId.parse(longer)
        assert NAMES.stack_of(other) != NAMES.stack_of(tenant)
        assert not NAMES.stack_of(other).startswith(NAMES.stack_of(tenant) + "/")
        assert keys.tenant_pk(other) != keys.tenant_pk(tenant)


@given(tenant_ids)
def test_a_tenant_is_found_again_by_its_partition_key(text: str) -> None:
    tenant = TenantId.parse(text)
    assert keys.tenant_of(keys.tenant_pk(tenant)) == tenant
    assert keys.tenant_of_history(keys.history_pk(tenant)) == tenant


@given(tenant_ids, st.sampled_from(TenantState))
def test_a_tenants_position_in_the_list_leads_to_its_row(text: str, state: TenantState) -> None:
    tenant = TenantId.parse(text)
    version = None if state is TenantState.DELETED else "0.1.0"
    listing_key, position = keys.listed_tenant(tenant, state, version)
    deleted = key_of(AuditKey(tenant, Operation.DELETE, None))
    assert keys.listing_position(state, position) == {
        **(deleted if state is TenantState.DELETED else keys.metadata_key(tenant)),
        "ListingKey": {"S": listing_key},
        "ListingSort": {"S": position},
    }


@given(tenant_ids)
def test_a_tenant_is_found_again_by_its_stacks_name_and_id(text: str) -> None:
    tenant = TenantId.parse(text)
    assert NAMES.tenant_of(NAMES.stack_of(tenant)) == tenant
    assert NAMES.tenant_of(f"arn:aws:cloudformation:eu-west-1:1:stack/{NAMES.stack_of(tenant)}/8ee5d510") == tenant


ACME = TenantId.parse("acme")


@pytest.mark.parametrize(
    "stack",
    [
        "",
        "arn:aws:cloudformation:eu-west-1:1:stack",
        NAMES.tenant_prefix,
        "some-other-stack",
        f"{NAMES.tenant_prefix}acme",
        f"{NAMES.tenant_prefix}acme-00000000",
        ACME.slug,
        NAMES.stack_of(ACME).upper(),
        f"{NAMES.stack_of(ACME)}-nested",
        NAMES.stack_of(ACME).replace("acme", "Acme"),
        f"x{NAMES.stack_of(ACME)}",
        f"arn:aws:cloudformation:eu-west-1:1:stack/other/{NAMES.stack_of(ACME)}",
        f"{NAMES.tenant_prefix}-acme-{ACME.slug[-8:]}",
        f"{NAMES.tenant_prefix}ac\nme-{ACME.slug[-8:]}",
    ],
)
def test_a_stack_that_merely_has_a_similar_name_is_no_tenants(stack: str) -> None:
    with pytest.raises(StackNotOurs):
        NAMES.tenant_of(stack)


@given(
    tenant_ids.map(TenantId),
    st.sampled_from(Operation),
    st.sampled_from(["", "-update", "-delete-2", "-update-undo-1"]),
)
def test_the_client_token_of_an_attempt_names_its_tenant(tenant: TenantId, operation: Operation, more: str) -> None:
    attempt = Attempt(tenant, operation, "10.2.33", 4)
    assert Attempt.tenant_of(f"{attempt.client_token}{more}") == tenant


def test_a_tenant_whose_id_ends_like_the_digest_of_another_is_told_from_it() -> None:
    tenant = TenantId(ACME.slug)
    assert Attempt.tenant_of(Attempt(tenant, Operation.UPDATE, "1.0.0", 1).client_token) == tenant


@pytest.mark.parametrize(
    "token",
    [
        *("", "-", "update", "update-", "update-acme-1-0-0-1-update", "update-acme-00000000-1-0-0-1"),
        *(f"Console-UpdateStack-{ACME.slug}", f"adopt-{ACME.slug}-1", ACME.slug, "update-" * 20_000),
    ],
    ids=lambda token: token[:40],
)
def test_a_token_that_berth_did_not_make_names_nobody(token: str) -> None:
    assert Attempt.tenant_of(token) is None
