"""A function's settings: read from its environment, failing fast and by name."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.adapters.settings import Settings
from orchestrator.common.errors import InvalidName, MissingSetting
from orchestrator.common.stack_arns import Location, StackArn
from orchestrator.events.delivery.addresses import AddressRules
from orchestrator.releases.states import PromotionMode
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Operation

VARIABLES = {name: f"BERTH_{name.upper()}" for name, value in vars(Settings).items() if isinstance(value, property)}
SPANS = {"linger", "empty_for", "purge_settle"}
VARIABLES |= {name: f"BERTH_{name.upper()}_SECONDS" for name in SPANS} | {
    "names": "BERTH_NAME",
    "control_plane": "BERTH_NAME",
}
VARIABLES |= {"mail_from": "BERTH_EVENTS_MAIL_FROM"}
# Made of several variables, none of which is required.
del VARIABLES["address_rules"]
# It has a default.
del VARIABLES["promotion"]
del VARIABLES["default_tier"]
del VARIABLES["warm_pool"]
OPTIONAL = {"kms_key", "api_proof_digest", "queue_access_role", "event_access_role", "response_url_prefix", "mail_from"}
OPTIONAL |= {"mail_configuration_set", "source_bucket"}
NUMBERS = {"credentials_seconds", "rollout_concurrency", "max_tenants", "creates_per_minute", "retry_after_seconds"}
FLAGS = {"create_on_get_queue", "stack_events"}
DOCUMENTS = {"dead_letter_queues"}
TYPED = {"location", "names", "stack_id"}
LISTS = {"former_kms_keys", "stack_policies"}
TEXTS = sorted(VARIABLES.keys() - NUMBERS - FLAGS - SPANS - DOCUMENTS - TYPED - LISTS)
REQUIRED = sorted(VARIABLES.keys() - OPTIONAL - LISTS)


def test_every_setting_has_its_own_variable() -> None:
    assert {"table", "version", "tenant_queue_machine"} | OPTIONAL | NUMBERS | SPANS | DOCUMENTS <= set(VARIABLES)


@pytest.mark.parametrize("name", TEXTS)
def test_a_setting_is_read_from_its_variable(name: str) -> None:
    assert getattr(Settings({VARIABLES[name]: "value"}), name) == "value"


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_a_number_is_read_as_one(name: str) -> None:
    assert getattr(Settings({VARIABLES[name]: "900"}), name) == 900


@pytest.mark.parametrize("name", sorted(FLAGS))
def test_a_flag_is_true_or_false(name: str) -> None:
    assert getattr(Settings({VARIABLES[name]: "true"}), name) is True
    assert getattr(Settings({VARIABLES[name]: "false"}), name) is False


@pytest.mark.parametrize("name", sorted(SPANS))
def test_a_span_of_time_is_read_in_seconds(name: str) -> None:
    assert getattr(Settings({VARIABLES[name]: "90"}), name) == timedelta(seconds=90)


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_a_structured_setting_is_json(name: str) -> None:
    assert getattr(Settings({VARIABLES[name]: '{"stack events": "https://queue"}'}), name) == {
        "stack events": "https://queue"
    }


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_is_separated_by_commas_and_may_be_missing(name: str) -> None:
    assert getattr(Settings({VARIABLES[name]: "one,two"}), name) == ("one", "two")
    assert getattr(Settings({VARIABLES[name]: ""}), name) == getattr(Settings({}), name) == ()


def test_the_stack_id_is_typed() -> None:
    arn = "arn:aws:cloudformation:eu-west-1:123456789012:stack/Berth/0a1b"
    assert Settings({"BERTH_STACK_ID": arn}).stack_id == StackArn.parse(arn)


def test_no_stacks_are_kept_ready_unless_a_setting_says_how_many() -> None:
    assert Settings({}).warm_pool == Settings({"BERTH_WARM_POOL": ""}).warm_pool == {}
    assert Settings({"BERTH_WARM_POOL": "gold=2,standard=7"}).warm_pool == {"gold": 2, "standard": 7}


def test_the_location_is_typed() -> None:
    location = Settings({"BERTH_LOCATION": "aws:eu-west-1:123456789012"}).location
    assert location == Location("aws", "eu-west-1", "123456789012")


def test_events_are_sent_to_public_addresses_that_are_not_our_own() -> None:
    assert Settings({}).address_rules == AddressRules()
    assert Settings({"BERTH_LOOPBACK_DESTINATIONS": "false", "BERTH_OWN_HOSTS": ""}).address_rules == AddressRules()
    own = Settings({"BERTH_OWN_HOSTS": "a.example,b.example"}).address_rules
    assert own == AddressRules(own_hosts=frozenset({"a.example", "b.example"}))


def test_only_a_local_setting_opens_loopback_and_plain_http() -> None:
    local = Settings({"BERTH_LOOPBACK_DESTINATIONS": "true"}).address_rules
    assert local == AddressRules(plain_http=True, loopback=True)


def test_the_name_is_typed() -> None:
    assert Settings({"BERTH_NAME": "Berth-dev"}).names == Names("Berth-dev")
    legacy = {"BERTH_NAME": "Berth", "BERTH_LEGACY_STACK_PREFIXES": "old-,platform-"}
    assert Settings(legacy).names == Names("Berth", ("old-", "platform-"))
    with pytest.raises(InvalidName):
        _ = Settings({"BERTH_NAME": "a b"}).names


def test_deployments_promote_releases_unless_a_setting_says_otherwise() -> None:
    assert Settings({}).promotion is Settings({"BERTH_PROMOTION": ""}).promotion is PromotionMode.ON_DEPLOY
    assert Settings({"BERTH_PROMOTION": "afterRollout"}).promotion is PromotionMode.AFTER_ROLLOUT


def test_tenants_are_created_in_the_tier_standard_unless_another_is_the_default() -> None:
    assert Settings({}).default_tier == Settings({"BERTH_DEFAULT_TIER": ""}).default_tier == "standard"
    assert Settings({"BERTH_DEFAULT_TIER": "gold"}).default_tier == "gold"


@pytest.mark.parametrize("environment", [{}, None], ids=["unset", "empty"])
@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_setting_is_named(name: str, environment: dict[str, str] | None) -> None:
    settings = Settings({VARIABLES[name]: ""} if environment is None else environment)
    with pytest.raises(MissingSetting, match=VARIABLES[name]):
        getattr(settings, name)


@pytest.mark.parametrize("name", sorted(OPTIONAL))
@pytest.mark.parametrize("empty", [False, True], ids=["unset", "empty"])
def test_an_optional_setting_may_be_missing(name: str, empty: bool) -> None:
    assert getattr(Settings({VARIABLES[name]: ""} if empty else {}), name) is None


MACHINES = {
    Operation.CREATE: "BERTH_CREATE_MACHINE",
    Operation.UPDATE: "BERTH_UPDATE_MACHINE",
    Operation.DELETE: "BERTH_DELETE_MACHINE",
}


@pytest.mark.parametrize("operation", Operation)
def test_every_operation_has_its_own_machine(operation: Operation) -> None:
    settings = Settings({variable: f"machine of {each}" for each, variable in MACHINES.items()})
    assert settings.machine(operation) == f"machine of {operation}"


@pytest.mark.parametrize("operation", Operation)
def test_a_missing_machine_is_named(operation: Operation) -> None:
    others = {variable: "machine" for each, variable in MACHINES.items() if each is not operation}
    with pytest.raises(MissingSetting, match=MACHINES[operation]):
        Settings(others).machine(operation)


def test_the_default_is_the_environment_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_TABLE", "from the environment")
    assert Settings().table == "from the environment"
