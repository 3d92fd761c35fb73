"""Control planes side by side: no name of one is ever taken for a name of another."""

from __future__ import annotations

import re
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.common.errors import InvalidName, StackNotOurs
from orchestrator.common.stack_arns import StackArn
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TenantId
from orchestrator.tenants.names import DEFAULT_NAME, NAME_MAX_LENGTH, Names
from tests.fakes import ACME

LONGEST = Names.parse("N" * NAME_MAX_LENGTH)
LONGEST_ID = TenantId.parse("x" * TENANT_ID_MAX_LENGTH)

# So alike that one is often the beginning of the other.
parts = st.sampled_from(["berth", "Berth", "dev", "d", "tenant", "tenants", "tenan", "queue", "metadata", "acme", "1"])
alike = st.lists(parts, min_size=1, max_size=4).map("-".join)


def parsed(name: str) -> Names:
    try:
        return Names.parse(name)
    except InvalidName:
        assume(False)
        raise


names = alike.map(parsed)


def test_the_default_names_have_not_changed() -> None:
    berth = Names.parse(DEFAULT_NAME)
    assert berth == Names()
    assert berth.control_plane == "Berth"
    assert berth.tenant_prefix == "berth-tenant-"
    assert berth.stack_of(ACME) == "berth-tenant-acme-822b33ad"
    assert berth.tenant_metadata_function == "berth-tenant-metadata"
    assert berth.tenant_queue_function == "berth-tenant-queue"
    assert berth.service_token_export == "BerthTenantQueueServiceToken"
    assert berth.metrics == "Berth"
    assert berth.api == "berth"


@pytest.mark.parametrize("name", ["B", "b", "Berth-dev", "staging-2", "a-1-b", "tenants", "x" * NAME_MAX_LENGTH])
def test_letters_digits_and_single_inner_hyphens_make_a_name(name: str) -> None:
    assert Names.parse(name).control_plane == name


@pytest.mark.parametrize(
    "name",
    [
        *("", "-", "1berth", "-berth", "berth-", "berth--dev", "berth_dev", "berth.dev", "berth/dev", "berth dev"),
        *("berth*", "berth\n", "b\u00e9rth", "berth:dev", "berth'", "x" * (NAME_MAX_LENGTH + 1), "x" * 10_000),
        *(None, 7, True, ["Berth"], {}),
    ],
)
def test_nothing_else_is_a_name(name: object) -> None:
    with pytest.raises(InvalidName) as refused:
        Names.parse(name)
    assert str(refused.value).isascii()
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "name", ["tenant", "berth-tenant", "Berth-Tenant", "berth-tenant-dev", "tenant-dev", "a-TENANT-b"]
)
def test_a_name_with_the_prefix_of_tenants_stacks_is_refused(name: str) -> None:
    with pytest.raises(InvalidName, match="tenant"):
        Names.parse(name)


@given(names, names)
def test_no_name_has_the_prefixes_of_two_control_planes(one: Names, other: Names) -> None:
    assume(one.control_plane.lower() != other.control_plane.lower())
    assert not one.tenant_prefix.startswith(other.tenant_prefix)


@given(names, names)
def test_names_that_cloudformation_derives_from_a_control_plane_are_never_a_tenants(one: Names, other: Names) -> None:
    """A resource without a name of its own is called after its stack and its logical id, in whatever case."""
    for name in (f"{one}-StackEventsUndelivered1A2B3C-XYZ", f"{one}-TenantsTable1A2B3C-XYZ", f"{one}Example-Q-XYZ"):
        assert not name.lower().startswith(other.tenant_prefix)


@given(names, names)
def test_a_control_plane_shares_no_name_with_another(one: Names, other: Names) -> None:
    assume(one != other)
    assert one.service_token_export != other.service_token_export
    assert one.metrics != other.metrics
    assume(one.control_plane.lower() != other.control_plane.lower())
    assert one.stack_of(ACME) != other.stack_of(ACME)
    functions = {names.tenant_metadata_function for names in (one, other)}
    functions |= {names.tenant_queue_function for names in (one, other)}
    assert len(functions) == 4


@given(names, names, st.from_regex(r"[a1](?:[a1-]{0,6}[a1])?", fullmatch=True) | st.sampled_from(["acme", "dev-acme"]))
def test_a_stack_and_a_queue_are_those_of_one_control_plane_only(one: Names, other: Names, text: str) -> None:
    assume(one.control_plane.lower() != other.control_plane.lower())
    tenant = TenantId.parse(text)
    stack = StackArn("aws", "eu-west-1", "123456789012", one.stack_of(tenant), "1")
    url = f"https://sqs.eu-west-1.amazonaws.com/123456789012/{stack.name}-InboundQueue-44A1A992CA56E"
    assert one.tenant_of(str(stack)) == tenant
    queue = one.queue_in(stack, url)
    assert queue is not None
    assert queue.arn.endswith(f":{stack.name}-InboundQueue-44A1A992CA56E")
    assert other.queue_in(stack, url) is None
    with pytest.raises(StackNotOurs):
        other.tenant_of(str(stack))


@pytest.mark.parametrize(("one", "other"), [*permutations([Names(), Names("Berth-dev"), Names("Berth-dev-2")], 2)])
def test_a_name_that_begins_with_another_name_is_a_different_name(one: Names, other: Names) -> None:
    with pytest.raises(StackNotOurs):
        other.tenant_of(one.stack_of(ACME))


def test_names_that_differ_only_by_case_have_the_same_functions_so_that_only_one_of_them_can_be_deployed() -> None:
    assert Names("Berth").tenant_metadata_function == Names("berth").tenant_metadata_function


def test_the_longest_names_keep_within_the_limits_of_aws() -> None:
    assert len(LONGEST.stack_of(LONGEST_ID)) <= 128
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", LONGEST.stack_of(LONGEST_ID))
    assert max(len(LONGEST.tenant_metadata_function), len(LONGEST.tenant_queue_function)) <= 64
    assert re.fullmatch(r"[A-Za-z0-9:-]{1,255}", LONGEST.service_token_export)
    assert re.fullmatch(r"[A-Za-z0-9-]{1,255}", LONGEST.metrics)


def test_the_prefix_of_queues_stays_when_cloudformation_shortens_their_names() -> None:
    """A queue's name has 80 characters: the stack's name, the logical id, 13 random characters and two hyphens."""
    assert len(LONGEST.tenant_prefix) < 80 - 2 - 13 - len("DeadLetterQueue")
    # Even if the stack's name and the logical id had half of the rest each.
    assert len(LONGEST.tenant_prefix) <= (80 - 2 - 13) // 2


# Names of an earlier system

LEGACY = Names.parse("Berth", ["old-", "platform-tenant-"])
A_STACK = StackArn("aws", "eu-west-1", "123456789012", "old-acme", "1")


def queue_url(name: str) -> str:
    return f"https://sqs.eu-west-1.amazonaws.com/123456789012/{name}"


@pytest.mark.parametrize("name", ["old-acme", "platform-tenant-1", LEGACY.stack_of(ACME)])
def test_names_of_an_earlier_system_are_within_reach_where_that_is_set(name: str) -> None:
    assert LEGACY.reaches(name)
    assert LEGACY.queue_in(A_STACK, queue_url(f"{name}-InboundQueue-1A2B")) is not None
    assert Names().reaches(name) is (name == LEGACY.stack_of(ACME))


@pytest.mark.parametrize("name", ["older", "platform-1", "xold-acme", "Old-acme", "berth-acme"])
def test_other_names_are_not(name: str) -> None:
    assert not LEGACY.reaches(name)
    assert LEGACY.queue_in(A_STACK, queue_url(name)) is None


@pytest.mark.parametrize(
    ("names", "name", "is_legacy"),
    [
        (LEGACY, "old-acme", True),
        (LEGACY, LEGACY.stack_of(ACME), False),
        (LEGACY, "billing", False),
        (Names(), "old-acme", False),
        (Names(), f"{LEGACY.tenant_prefix}acme", False),
        (Names("Berth", ("berth-tenant-",)), f"{LEGACY.tenant_prefix}acme", True),
        (Names("Berth", ("berth-tenant-",)), LEGACY.stack_of(ACME), False),
    ],
)
def test_a_name_is_an_earlier_systems_if_that_is_set_and_berth_derives_it_for_no_tenant(
    names: Names, name: str, is_legacy: bool
) -> None:
    assert names.is_legacy(name) is is_legacy


def test_a_name_of_an_earlier_system_does_not_show_the_tenant_of_a_stack() -> None:
    with pytest.raises(StackNotOurs):
        LEGACY.tenant_of("old-acme-822b33ad")
    assert LEGACY.stack_of(ACME) == Names().stack_of(ACME)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        *(
            ("Berth", prefix)
            for prefix in ("berth", "BERTH", "ber", "berth-", "Berth-", "berth-t", "berth-dev-tenant-")
        ),
        *(("Berth-Dev", prefix) for prefix in ("berth-tenant-", "Berth", "berth-staging-tenant-")),
        *(("Platform-2", prefix) for prefix in ("platform-", "Platform-3", "plat", "berth-tenant-", "Ber")),
    ],
)
def test_a_prefix_that_reaches_control_planes_of_similar_names_is_refused(name: str, prefix: str) -> None:
    with pytest.raises(InvalidName, match="cannot be a prefix of an earlier system's names"):
        Names.parse(name, [prefix])


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        *(("Berth", prefix) for prefix in ("old-tenant-", "berthold-", "platform-", "berth-tenant-", "tenant-")),
        ("Berth-Dev", "berth-dev-tenant-"),
    ],
)
def test_a_prefix_that_no_control_plane_of_a_similar_name_has_is_taken(name: str, prefix: str) -> None:
    assert Names.parse(name, [prefix]).legacy_prefixes == (prefix,)


@pytest.mark.parametrize("prefix", ["", "ol", "-old", "1old", "old_", "old*", "old-\n", "x" * 65, "Ber", "Berth"])
def test_a_prefix_that_would_reach_too_far_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidName):
        Names.parse("Berth", [prefix])
