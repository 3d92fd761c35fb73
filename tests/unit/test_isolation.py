"""Whatever somebody gives for a tenant id, nothing that is derived from it can mean another tenant's."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.sts import StsCredentials
from orchestrator.common.errors import InvalidTenantId
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TenantId
from orchestrator.tenants.credentials import TENANT_TAG, Access, session_policy
from orchestrator.tenants.records import Attempt, Operation, Queue, Status, TenantState
from tests.fakes import NAMES, NOON, VERSION

SAFE = re.compile(r"[A-Za-z0-9-]{1,40}")
MEANT = "#/:.*?${}[]<>|\\\"' \n\r\t\0%&,;@"
"""Characters with a meaning in a place where derived names are used: keys, ARNs, policies, paths, names."""
NASTY = ["METADATA", "LOCK", "AUDIT", "HISTORY#", "TENANT_ID#", "..", "${aws:PrincipalTag/x}", "\u212a", "\u0661", "--"]
ALIKE = "aAbB1-"


def texts(count: int, seed: int = 20261116) -> Iterator[str]:
    """Ids and what looks like one: often equal but for one character, or one the beginning of the other."""
    random_ = random.Random(seed)

    def some(alphabet: str, most: int) -> str:
        return "".join(random_.choice(alphabet) for _ in range(random_.randint(1, most)))

    before = ["acme"]
    for _ in range(count):
        kind = random_.randrange(4)
        if kind == 0:
            text = some(ALIKE, 4)
        elif kind == 1:
            text = random_.choice(before) + random_.choice(["", "-1", "-METADATA", "x", *NASTY, *MEANT])
        elif kind == 2:
            at = random_.randrange(6)
            text = random_.choice(before)
            text = text[:at] + random_.choice([*MEANT, *ALIKE, *NASTY]) + text[at:]
        else:
            text = some(ALIKE + "cdefXYZ0289", TENANT_ID_MAX_LENGTH + 2)
        before.append(text)
        yield text


def parsed(text: str) -> TenantId | None:
    try:
        return TenantId.parse(text)
    except InvalidTenantId:
        return None


def names_of(tenant: TenantId) -> dict[str, str]:
    """Everything that is put together from a tenant's id and that somebody tells tenants apart by."""
    names = {
        "partition": keys.tenant_pk(tenant),
        "history": keys.history_pk(tenant),
        "stack": NAMES.stack_of(tenant),
        "position": keys.listed_tenant(tenant, TenantState.READY, VERSION)[1],
        "position among those without a version": keys.listed_tenant(tenant, TenantState.FAILED, None)[1],
        "position among the unfinished": keys.unfinished_operation(tenant, NOON)[1],
        "outcome": keys.outcome_key("20261116-120000-abcd", tenant)["sk"]["S"],
        "position among the failed": keys.listed_failure("20261116-120000-abcd", tenant)[1],
        **{f"session {access}": f"berth-{access}-{tenant}" for access in Access},
    }
    for operation in Operation:
        attempt = Attempt(tenant, operation, VERSION, 1)
        names[f"execution {operation}"] = attempt.name
        names[f"client token {operation}"] = attempt.client_token
        names[f"line of history {operation}"] = keys.history_key(tenant, NOON, f"{attempt.name}#{Status.STARTED}", {})[
            "sk"
        ]["S"]
    return names


ALPHABETS = {
    "partition": r"TENANT_ID#[A-Za-z0-9-]+",
    "history": r"HISTORY#[A-Za-z0-9-]+",
    "stack": r"[A-Za-z][A-Za-z0-9-]{0,127}",
    "position": r"[0-9.]+#[A-Za-z0-9-]+",
    "position among those without a version": r"#[A-Za-z0-9-]+",
    "position among the unfinished": r"[0-9TZ.:-]+#[A-Za-z0-9-]+",
    "outcome": r"TENANT#[A-Za-z0-9-]+",
    "position among the failed": r"[A-Za-z0-9-]+",
    "session": r"[\w+=,.@-]{2,64}",
    "execution": r"[A-Za-z0-9.-]{1,80}",
    "client token": r"[a-zA-Z][-a-zA-Z0-9]{0,127}",
    "line of history": r"[0-9TZ.:-]+#[A-Za-z0-9.-]+#[A-Za-z]+#[0-9a-f]{32}",
}


def alphabet(name: str) -> str:
    return ALPHABETS.get(name) or next(ALPHABETS[kind] for kind in ALPHABETS if name.startswith(f"{kind} "))


def check_alphabets(tenant: TenantId) -> None:
    assert SAFE.fullmatch(tenant.value)
    for name, derived in names_of(tenant).items():
        assert re.fullmatch(alphabet(name), derived, re.ASCII), (name, derived)


def check_meaning(tenant: TenantId) -> None:
    """From each name by which a tenant is found again, it is this one."""
    assert keys.tenant_of(keys.tenant_pk(tenant)) == tenant
    assert keys.tenant_of_history(keys.history_pk(tenant)) == tenant
    assert keys.tenant_of_outcome(keys.outcome_key("r", tenant)["sk"]["S"]) == tenant
    assert NAMES.tenant_of(NAMES.stack_of(tenant)) == tenant
    for version in (VERSION, None):
        position = keys.listed_tenant(tenant, TenantState.READY, version)[1]
        assert keys.version_of_position(position) == (version or "")
        assert keys.listing_position(TenantState.READY, position)["pk"] == {"S": keys.tenant_pk(tenant)}


@pytest.fixture(scope="module")
def tenants() -> list[TenantId]:
    made = [parsed(text) for text in texts(10_000)]
    return list(dict.fromkeys(tenant for tenant in made if tenant))


def test_every_id_is_refused_or_harmless(tenants: list[TenantId]) -> None:
    refused = sum(parsed(text) is None for text in texts(10_000))
    assert 2_000 < refused < 8_000
    for tenant in tenants:
        check_alphabets(tenant)
        check_meaning(tenant)


def test_no_two_tenants_share_a_name(tenants: list[TenantId]) -> None:
    """The same holds for names of different kinds that are used in one place: keys among keys, tokens among tokens."""
    places: dict[str, list[str]] = {}
    for tenant in tenants:
        for name, derived in names_of(tenant).items():
            place = "partition" if name == "history" else re.sub(" (CREATE|UPDATE|DELETE)$", "", name)
            places.setdefault(place, []).append(derived)
    for place, names in places.items():
        assert len(set(names)) == len(names), place
    for place in ("stack", "execution"):  # AWS compares some of these without regard to case.
        assert len({name.lower() for name in places[place]}) == len(places[place]), place


def test_rows_found_by_prefix_belong_to_one_tenant(tenants: list[TenantId]) -> None:
    """Queries say how sort keys begin, policies how names do. All of these end where the next part begins."""
    begins: dict[str, Callable[[TenantId], str]] = {
        "stack's ARN": lambda tenant: f"stack/{NAMES.stack_of(tenant)}/",
        "execution": lambda tenant: f"create-{tenant.slug}-0.",
        "line of history": lambda tenant: f"create-{tenant.slug}-{VERSION}-1#",
        "partition": lambda tenant: f"{keys.tenant_pk(tenant)}#",
    }
    for prefix in begins.values():
        ordered = sorted(prefix(tenant) for tenant in tenants)
        # Whatever begins with another stands, in order, right behind it.
        assert not [one for one, other in pairwise(ordered) if other.startswith(one)]


def test_at_a_version_are_only_those_that_are_at_it(tenants: list[TenantId]) -> None:
    for tenant in tenants[:500]:
        for version in ("0.1.0", "0.1.01", "10.1.0", None):
            position = keys.listed_tenant(tenant, TenantState.READY, version)[1]
            matching = [
                each for each in ("0.1.0", "0.1.01", "10.1.0", None) if position.startswith(keys.version_prefix(each))
            ]
            assert matching == [version]


# The policy of a session


class Sts:
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    def assume_role(self, **asked: Any) -> Mapping[str, Any]:
        self.asked = asked
        given = {"AccessKeyId": "id", "SecretAccessKey": "secret", "SessionToken": "token", "Expiration": NOON}
        return {"Credentials": given}


def queue_of(tenant: TenantId) -> Queue:
    name = f"{NAMES.stack_of(tenant)}-InboundQueue-44A1A992CA56E"
    return Queue(f"arn:aws:sqs:eu-west-1:000000000000:{name}", f"https://sqs.eu-west-1.amazonaws.com/0/{name}")


def test_a_session_is_for_one_tenants_queue_whoever_it_is(tenants: list[TenantId]) -> None:
    sts, resources = Sts(), Counter[str]()
    issuer = StsCredentials(lambda: sts, "arn:role", 900)  # type: ignore[arg-type,return-value]
    for tenant in tenants:
        issuer.issue(tenant, queue_of(tenant), Access.SEND, source_identity="platform-0123456789ab")
        policy = json.loads(sts.asked["Policy"])
        assert policy == session_policy(queue_of(tenant), Access.SEND)
        (statement,) = policy["Statement"]
        assert not set(statement["Resource"]) & set("*?${}")
        assert sts.asked["Tags"] == [{"Key": TENANT_TAG, "Value": tenant.value}]
        assert re.fullmatch(alphabet("session"), sts.asked["RoleSessionName"], re.ASCII)
        resources[statement["Resource"]] += 1
    assert len(resources) == len(tenants)


# The same for whatever else there is, so that what is found is small


@settings(max_examples=50)
@given(st.text(max_size=TENANT_ID_MAX_LENGTH + 2) | st.text(st.sampled_from(ALIKE + MEANT), max_size=6))
def test_any_text_is_refused_or_harmless(text: str) -> None:
    tenant = parsed(text)
    assert (tenant is None) or tenant.value == text
    if tenant is not None:
        check_alphabets(tenant)
        check_meaning(tenant)


@settings(max_examples=50)
@given(*[st.text(st.sampled_from(ALIKE), min_size=1, max_size=4)] * 2)
def test_any_two_tenants_have_names_of_their_own(one: str, other: str) -> None:
    first, second = parsed(one), parsed(other)
    assume(first and second and first != second)
    assert first is not None
    assert second is not None
    assert not set(names_of(first).items()) & set(names_of(second).items())
