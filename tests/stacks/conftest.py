"""The templates that the tests read, synthesised once per session."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Use the Node of the environment, because the CDK refuses older versions. Set this before the CDK is imported.
os.environ.setdefault("JSII_NODE", str(Path(sys.executable).parent / "node"))

from aws_cdk import App
from aws_cdk.assertions import Template

from orchestrator.common.own_versions import berth_version, template_version
from stacks.app import build
from stacks.common import functions as functions_module
from stacks.common.function_code import build_code
from stacks.control_plane import ControlPlaneStack
from stacks.events.stack import EventsStack
from stacks.settings import Dependencies, Settings, Tracing
from stacks.tenants.template import tenant_template
from tests.fakes import NAMES
from tests.stacks.policies import spelled, trust
from tests.stacks.released import EVERYTHING

Json = dict[str, Any]

OPERATORS_POLICIES = "arn:aws:iam::123456789012:policy/tenants,arn:aws:iam::aws:policy/AmazonS3FullAccess"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:on-call"


_assemblies: dict[frozenset[tuple[str, str]], Path] = {}
"""The assemblies that were synthesised before, by their settings."""


def _synthesised(directories: pytest.TempPathFactory, **settings: str) -> Path:
    """Synthesise the control plane and the event plane, which fails on findings of cdk-nag."""
    known = frozenset(settings.items())
    if known not in _assemblies:
        directory = directories.mktemp("assembly")
        context = {"berth:dependencies": "host", **{f"berth:{name}": value for name, value in settings.items()}}
        app = App(outdir=str(directory), analytics_reporting=False, context=context)
        build(app)
        app.synth()
        _assemblies[known] = directory
    return _assemblies[known]


def functions_in(template: Json) -> dict[str, str]:
    """The logical id of every function, by the name of its handler's file."""
    return {
        resource["Properties"]["Handler"].split(".")[-2]: logical_id
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Function"
    }


def _template(assembly: Path, name: str = "Berth") -> Json:
    template: Json = json.loads((assembly / f"{name}.template.json").read_text(encoding="utf-8"))
    return template


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The control plane and the event plane with the settings' defaults."""
    return _synthesised(tmp_path_factory)


@pytest.fixture(scope="session")
def control_plane(assembly: Path) -> Json:
    return _template(assembly)


@pytest.fixture(scope="session")
def event_plane(assembly: Path) -> Json:
    """The event plane with the settings' defaults."""
    return _template(assembly, "BerthEvents")


PLANES = ("control_plane", "event_plane")


@pytest.fixture(params=PLANES)
def plane(request: pytest.FixtureRequest) -> Json:
    """Each of the two stacks, for what is the same in both."""
    template: Json = request.getfixturevalue(request.param)
    return template


@pytest.fixture(scope="session")
def without_events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembly without the event plane."""
    return _synthesised(tmp_path_factory, events="false")


def _variant(stack: str = "Berth", **settings: str) -> Any:
    """A fixture: the template of a stack with these settings."""

    @pytest.fixture(scope="session")
    def template(tmp_path_factory: pytest.TempPathFactory) -> Json:
        return _template(_synthesised(tmp_path_factory, **settings), stack)

    return template


SWITCHED_ON = {"credentialsSeconds": "1800", "rolloutOnPublish": "true"}
LEGACY_PREFIXES = ("old-tenant-", "platform-queues-")

with_stack_policies = _variant(stackPolicyArns=OPERATORS_POLICIES)
without_creates = _variant(createOnGetQueue="false")
without_rate_limit = _variant(createsPerMinute="0")
with_warm_pool = _variant(warmPool="5")
"""Stacks are kept ready."""
with_everything = _variant(**SWITCHED_ON)
"""Credentials for queues and automatic rollouts are switched on."""
with_dashboard = _variant(dashboard="true")
events_with_dashboard = _variant("BerthEvents", dashboard="true")
"""Both stacks have a dashboard."""
ADOPTER = "arn:aws:iam::123456789012:role/adopter"
with_legacy_stacks = _variant(**SWITCHED_ON, legacyStackPrefixes=",".join(LEGACY_PREFIXES), adopterArn=ADOPTER)
"""There are tenants whose stacks an earlier system created."""
with_key = _variant(**EVERYTHING)
"""Everything is switched on, and the customer's key is used."""
events_with_everything = _variant("BerthEvents", **SWITCHED_ON)
"""The event plane with credentials switched on."""
MAIL_FROM = "events@example.com"
events_with_mail = _variant("BerthEvents", eventsMailFrom=MAIL_FROM)
"""The event plane with an address that mail comes from."""
events_with_key = _variant("BerthEvents", **EVERYTHING)
"""The event plane with the customer's key."""
beside = _variant("Berth-dev", name="Berth-dev", dashboard="true", **SWITCHED_ON)
"""Another control plane, whose name starts with the default name."""


@pytest.fixture(scope="session")
def templates_with_other_settings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Template, Template]:
    """Both stacks with every setting except the name different from its default."""
    layer = tmp_path_factory.mktemp("layer")
    (layer / "python").mkdir()
    code = tmp_path_factory.mktemp("code")
    build_code(code, python=None)
    settings = Settings(
        await_stack_seconds=7,
        await_review_seconds=5,
        retry_after_seconds=9,
        dependencies=Dependencies.LAYER,
        adopter_arn=ADOPTER,
        alarm_topic_arn=TOPIC,
        dashboard=True,
        log_retention_days=14,
        tracing=Tracing.ACTIVE,
        get_queue_concurrency=16,
        tenant_metadata_concurrency=5,
        credentials_seconds=1800,
        rollout_concurrency=8,
        linger_seconds=2,
        stack_role_source=True,
        stack_policy_arns=tuple(OPERATORS_POLICIES.split(",")),
        rollout_on_publish=True,
        api_proof_generation=2,
        max_tenants=5_000,
        creates_per_minute=10,
        warm_pool={"gold": 2, "standard": 5},
        create_on_get_queue=False,
        events_environment="staging",
        ingest_concurrency=30,
        receive_concurrency=20,
        tenant_events_concurrency=10,
        deliver_concurrency=8,
        events_mail_from="events@example.com",
        loopback_destinations=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functions_module, "LAYER", layer)
        patch.setattr(functions_module, "CODE", code)
        app = App(outdir=str(tmp_path_factory.mktemp("assembly")), analytics_reporting=False)
        control_plane = ControlPlaneStack(
            app, version=berth_version(), template_version=template_version(), settings=settings
        )
        events = EventsStack(app, control_plane=control_plane, version=berth_version(), settings=settings)
        return Template.from_stack(control_plane), Template.from_stack(events)


@pytest.fixture(scope="session")
def other_settings(templates_with_other_settings: tuple[Template, Template]) -> Template:
    """The control plane with every setting except the name different from its default."""
    return templates_with_other_settings[0]


@pytest.fixture(scope="session")
def events_with_other_settings(templates_with_other_settings: tuple[Template, Template]) -> Template:
    """The event plane with every setting except the name different from its default."""
    return templates_with_other_settings[1]


@pytest.fixture(scope="session")
def control_plane_template(control_plane: Json) -> Template:
    return Template.from_json(control_plane)


@pytest.fixture(scope="session")
def tenant() -> Json:
    return tenant_template(template_version())


@pytest.fixture(scope="session")
def function_ids(control_plane: Json) -> dict[str, str]:
    return functions_in(control_plane)


@pytest.fixture(scope="session")
def event_function_ids(event_plane: Json) -> dict[str, str]:
    return functions_in(event_plane)


@pytest.fixture(scope="session")
def releases(control_plane: Json) -> dict[str, str]:
    """The logical id of every release that the deployment publishes, by its version."""
    return {
        resource["Properties"]["Version"]: logical_id
        for logical_id, resource in control_plane["Resources"].items()
        if resource["Type"] == "Custom::Release"
    }


@pytest.fixture(scope="session")
def the_only(control_plane: Json) -> Callable[[str], str]:
    """The logical id of the only resource of a type."""

    def find(resource_type: str) -> str:
        (logical_id,) = (
            found for found, resource in control_plane["Resources"].items() if resource["Type"] == resource_type
        )
        return logical_id

    return find


@pytest.fixture(scope="session")
def machine_ids(control_plane: Json, function_ids: dict[str, str]) -> dict[str, str]:
    """The logical id of every machine, by the name of its workflow's file."""
    outputs, resources = control_plane["Outputs"], control_plane["Resources"]
    variables = resources[function_ids["tenant_queue"]]["Properties"]["Environment"]["Variables"]
    found = {
        "create_tenant": outputs["CreateTenantMachineArn"]["Value"]["Ref"],
        "update_tenant": outputs["UpdateTenantMachineArn"]["Value"]["Ref"],
        "delete_tenant": outputs["DeleteTenantMachineArn"]["Value"]["Ref"],
        "tenant_queue": variables["BERTH_TENANT_QUEUE_MACHINE"]["Ref"],
        "rollout": outputs["RolloutMachineArn"]["Value"]["Ref"],
    }
    machines = {name for name, resource in resources.items() if resource["Type"] == "AWS::StepFunctions::StateMachine"}
    assert set(found.values()) == machines
    return found


@pytest.fixture(scope="session")
def stack_role(control_plane: Json) -> str:
    (role,) = (
        logical_id
        for logical_id, resource in control_plane["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role"
        and trust(resource)["Principal"] == {"Service": "cloudformation.amazonaws.com"}
    )
    return role


@pytest.fixture(scope="session")
def dead_letter_queues(control_plane: Json, function_ids: dict[str, str]) -> dict[str, str]:
    """The logical id of every dead-letter queue that the operators' function knows, by the subject of its messages."""
    variables = control_plane["Resources"][function_ids["operators"]]["Properties"]["Environment"]["Variables"]
    queues = json.loads(spelled(variables["BERTH_DEAD_LETTER_QUEUES"]))
    return {holds: reference.strip("<>") for holds, reference in queues.items()}


@pytest.fixture(scope="session")
def ended_executions(control_plane: Json) -> str:
    """The logical id of the queue of ended executions."""
    queue: str = control_plane["Outputs"]["EndedExecutionsQueueUrl"]["Value"]["Ref"]
    return queue


@pytest.fixture(scope="session")
def names(
    control_plane: Json,
    the_only: Callable[[str], str],
    function_ids: dict[str, str],
    machine_ids: dict[str, str],
    releases: dict[str, str],
    stack_role: str,
    dead_letter_queues: dict[str, str],
    ended_executions: str,
) -> dict[str, str]:
    """Readable names of resources, by their ARNs as the template spells them."""
    here = "<AWS::Region>:<AWS::AccountId>"
    table = f"<{the_only('AWS::DynamoDB::Table')}.Arn>"
    bucket = f"<{the_only('AWS::S3::Bucket')}.Arn>"
    rule = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
    uploaded = [control_plane["Resources"][release]["Properties"] for release in releases.values()]
    publisher = control_plane["Resources"][function_ids["publish_release"]]["Properties"]
    source_bucket = spelled(publisher["Environment"]["Variables"]["BERTH_SOURCE_BUCKET"])
    return {
        "<AWS::StackId>": "the control plane's own stack",
        f"arn:<AWS::Partition>:lambda:{here}:function:berth-unfinished-work": "the function for unfinished work",
        table: "the table",
        f"{table}/index/Listing": "the index",
        f"arn:<AWS::Partition>:cloudformation:{here}:stack/{NAMES.tenant_prefix}*/*": "tenant stacks",
        f"arn:<AWS::Partition>:cloudformation:{here}:stack/*/*": "all stacks",
        f"arn:<AWS::Partition>:cloudformation:{here}:stack/Berth/*": "Berth's own stacks, by their names",
        f"arn:<AWS::Partition>:cloudformation:{here}:stack/BerthEvents/*": "Berth's own stacks, by their names",
        f"arn:<AWS::Partition>:sqs:{here}:{NAMES.tenant_prefix}*": "tenant queues",
        f"arn:<AWS::Partition>:apigateway:<AWS::Region>::/apis/<{the_only('AWS::ApiGatewayV2::Api')}>/stages/*": (
            "the API's stage"
        ),
        f"<{stack_role}.Arn>": "the stack role",
        f"{bucket}/tenant-stack/*": "published templates",
        f"{bucket}/rollouts/*": "rollouts' lists",
        f"{bucket}/rollouts/results/*": "rollouts' results",
        f"arn:<AWS::Partition>:events:{here}:rule/{rule}": "the rule about ends of executions",
        **{
            f"arn:<AWS::Partition>:s3:::{source_bucket}/{template['SourceKey']}": (
                f"the uploaded template {template['Version']}"
            )
            for template in uploaded
        },
        **{f"<{machine}>": f"the machine {name}" for name, machine in machine_ids.items()},
        **{
            f"arn:<AWS::Partition>:states:{here}:execution:<{machine}.Name>:*": f"executions of {name}"
            for name, machine in machine_ids.items()
        },
        f"arn:<AWS::Partition>:states:{here}:execution:<{machine_ids['rollout']}.Name>/Turn:*": "turns in rollouts",
        **{f"<{logical_id}.Arn>": f"the function {name}" for name, logical_id in function_ids.items()},
        f"arn:<AWS::Partition>:lambda:{here}:function:{NAMES.tenant_metadata_function}": "the function tenant_metadata",
        **{f"<{queue}.Arn>": f"dead letters: {holds}" for holds, queue in dead_letter_queues.items()},
        f"<{ended_executions}.Arn>": "executions that ended",
    }


OF_FUNCTIONS = {
    "First": "first tries",
    "Later": "other tries",
    "Lost": "lost messages",
    "NotDispatched": "batches of the stream",
}
"""The queues that functions empty, by their names in the template."""


@pytest.fixture(scope="session")
def event_names(event_plane: Json, event_function_ids: dict[str, str]) -> dict[str, str]:
    """Readable names of resources that the event plane uses, by their ARNs as its template spells them."""
    here = "<AWS::Region>:<AWS::AccountId>"

    def the_only(resource_type: str) -> str:
        (found,) = (name for name, each in event_plane["Resources"].items() if each["Type"] == resource_type)
        return found

    tenants = "<Berth:ExportsOutputFnGetAttTenantsTable97BAC775ArnE53D8D97>"
    events, bucket = f"<{the_only('AWS::DynamoDB::Table')}.Arn>", f"<{the_only('AWS::S3::Bucket')}.Arn>"
    operators = event_plane["Resources"][event_function_ids["event_operators"]]["Properties"]
    queues = json.loads(spelled(operators["Environment"]["Variables"]["BERTH_DEAD_LETTER_QUEUES"]))
    return {
        "<AWS::StackId>": "the stack itself",
        tenants: "the tenants' table",
        f"{tenants}/index/Listing": "the tenants' index",
        events: "the events' table",
        f"{events}/index/status-index": "the index by status",
        f"{events}/index/event-type-index": "the index by type",
        f"<{the_only('AWS::DynamoDB::Table')}.StreamArn>": "the events' stream",
        "<Berth:ExportsOutputFnGetAttTenantsTable97BAC775StreamArnF374674C>": "the tenants' stream",
        f"<{the_only('AWS::Events::EventBus')}.Arn>": "the bus of Berth's own events",
        bucket: "the bucket of contents",
        f"{bucket}/*": "contents",
        f"<{the_only('AWS::KMS::Key')}.Arn>": "the key for secrets",
        f"<{the_only('AWS::StepFunctions::StateMachine')}>": "the machine purge_events",
        f"arn:<AWS::Partition>:apigateway:<AWS::Region>::/apis/<{the_only('AWS::ApiGatewayV2::Api')}>/stages/*": (
            "the API's stage"
        ),
        **{f"<{logical_id}.Arn>": f"the function {name}" for name, logical_id in event_function_ids.items()},
        **{f"<{queue.strip('<>')}.Arn>": f"dead letters: {holds}" for holds, queue in queues.items()},
        f"arn:<AWS::Partition>:execute-api:{here}:<{the_only('AWS::ApiGatewayV2::Api')}>": "the Events API",
        f"arn:<AWS::Partition>:sqs:{here}:{NAMES.tenant_prefix}*": "tenant queues",
        **{
            f"<{name}.Arn>": OF_FUNCTIONS[kind]
            for name, each in event_plane["Resources"].items()
            if each["Type"] == "AWS::SQS::Queue" and (kind := name.removeprefix("DeliveryQueues")[:-8]) in OF_FUNCTIONS
        },
    }
