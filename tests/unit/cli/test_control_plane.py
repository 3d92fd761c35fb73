"""The choice of the control plane, and how its parts are found. A local server stands in for AWS."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import parse_qs

import pytest
from botocore.exceptions import NoCredentialsError, NoRegionError, ProfileNotFound

from orchestrator.api.fields import EmptyRequest, TenantIdRequest
from orchestrator.api.queue_routes import GET_QUEUE
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.cli.control_plane import Options, choose, find
from orchestrator.cli.errors import ControlPlaneNotFound, ExitCode
from orchestrator.cli.invocation import World
from tests.unit.cli.conftest import Result, Scene
from tests.unit.cli.fake_api import ADA

OUTPUTS = {"ApiUrl": "https://a1b2c3.execute-api.us-east-1.amazonaws.com/", "Version": "0.1.0"}


@dataclass
class FakeAws:
    """One endpoint for CloudFormation and the API, like the emulator. It is also the local control plane."""

    endpoint: str = "http://127.0.0.1:1"
    outputs: dict[str, str] = field(default_factory=lambda: dict(OUTPUTS))
    refusal: tuple[str, str] | None = None
    exports: list[tuple[str, str]] | None = None
    """The exports, with the stacks that export them; ``None`` if listing them is denied."""
    asked: list[str] = field(default_factory=list)

    def session_settings(self) -> dict[str, str]:
        return {"aws_access_key_id": "local", "aws_secret_access_key": "local", "region_name": "us-east-1"}

    def api_url(self, deployed: str) -> str:
        return deployed.replace(".amazonaws.com", ".localhost")

    def answer(self, form: dict[str, list[str]]) -> tuple[int, str]:
        self.asked.append(" ".join(form[name][0] for name in ("Action", "StackName") if name in form))
        if form["Action"] == ["GetCallerIdentity"]:
            result = f"<GetCallerIdentityResult><Arn>{ADA}</Arn></GetCallerIdentityResult>"
            return 200, f"<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>"
        if form["Action"] == ["ListExports"] and self.exports is not None:
            members = "".join(
                f"<member><ExportingStackId>arn:aws:cloudformation:eu-west-1:1:stack/{stack}/1</ExportingStackId>"
                f"<Name>{name}</Name><Value>x</Value></member>"
                for name, stack in self.exports
            )
            result = f"<ListExportsResult><Exports>{members}</Exports></ListExportsResult>"
            return 200, f"<ListExportsResponse>{result}</ListExportsResponse>"
        if self.refusal:
            code, message = self.refusal if form["Action"] == ["DescribeStacks"] else ("AccessDenied", "not you")
            error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
            return 400, f"<ErrorResponse>{error}</ErrorResponse>"
        outputs = "".join(
            f"<member><OutputKey>{name}</OutputKey><OutputValue>{value}</OutputValue></member>"
            for name, value in self.outputs.items()
        )
        stack = (
            "<StackId>arn:aws:cloudformation:eu-west-1:111122223333:stack/Berth/1</StackId>"
            "<StackName>Berth</StackName><CreationTime>2026-11-16T12:00:00Z</CreationTime>"
            f"<StackStatus>CREATE_IN_PROGRESS</StackStatus><Outputs>{outputs}</Outputs>"
        )
        result = f"<DescribeStacksResult><Stacks><member>{stack}</member></Stacks></DescribeStacksResult>"
        return 200, f"<DescribeStacksResponse>{result}</DescribeStacksResponse>"


@pytest.fixture
def aws() -> Iterator[FakeAws]:
    fake = FakeAws()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._reply(*fake.answer(parse_qs(sent)))

        def do_GET(self) -> None:
            fake.asked.append(f"GET {self.headers['Host']}{self.path}")
            self._reply(200, json.dumps({"state": "READY", "tenants": [], "cursor": None, "checks": []}))

        def _reply(self, status: int, body: str) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        fake.endpoint = f"http://127.0.0.1:{http.server_port}"
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield fake
        http.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _no_aws_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without this machine's settings, and without a search for credentials on the network."""
    for name in os.environ:
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def on_aws(aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> FakeAws:
    """The server, reached through the SDK's own settings, as AWS is."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    return aws


def nothing() -> None:
    """There is no local control plane."""


class TestWhich:
    @pytest.mark.parametrize(
        ("options", "environment", "is_local"),
        [
            (Options(), {}, True),
            (Options(), {"AWS_DEFAULT_REGION": "eu-west-1"}, True),
            (Options(local=True), {"AWS_PROFILE": "prod", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE"}, True),
            (Options(), {"AWS_ACCESS_KEY_ID": "test", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, True),
            (Options(), {"AWS_ACCESS_KEY_ID": "test", "AWS_ENDPOINT_URL": "http://127.0.0.1:2"}, False),
            (Options(), {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE"}, False),
            (Options(), {"AWS_PROFILE": "prod"}, False),
            (Options(profile="prod"), {}, False),
            (Options(region="eu-west-1"), {}, False),
        ],
    )
    def test_the_choice_when_the_local_control_plane_is_running(
        self, options: Options, environment: dict[str, str], is_local: bool
    ) -> None:
        local = FakeAws()
        assert choose(options, environment, lambda: local) is (local if is_local else None)

    def test_aws_is_used_when_the_local_control_plane_is_not_running(self) -> None:
        assert choose(Options(), {}, nothing) is None

    def test_a_local_control_plane_that_was_stopped_is_not_replaced_by_aws(self) -> None:
        with pytest.raises(ControlPlaneNotFound, match="The local control plane is stopped, and nothing selects AWS"):
            choose(Options(), {"AWS_DEFAULT_REGION": "eu-west-1"}, nothing, lambda: True)

    @pytest.mark.parametrize(
        ("options", "environment"),
        [
            (Options(region="eu-west-1"), {}),
            (Options(profile="prod"), {}),
            (Options(), {"AWS_PROFILE": "prod"}),
            (Options(), {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE"}),
        ],
    )
    def test_aws_is_used_if_it_is_selected_while_the_local_control_plane_is_stopped(
        self, options: Options, environment: dict[str, str]
    ) -> None:
        assert choose(options, environment, nothing, lambda: True) is None

    def test_local_is_refused_when_the_local_control_plane_is_not_running(self) -> None:
        with pytest.raises(ControlPlaneNotFound, match="The local control plane is not running: start it with make up"):
            choose(Options(local=True), {}, nothing)


class TestLocal:
    def berth(self, scene: Scene, aws: FakeAws, *arguments: str) -> Result:
        world = World(find=partial(find, environment={}, find_local=lambda: aws))
        return scene.berth_in(world, arguments)

    def test_a_note_says_that_the_local_control_plane_is_used(self, scene: Scene, aws: FakeAws) -> None:
        result = self.berth(scene, aws, "tenants", "--json")
        assert result.exit_code == ExitCode.OK
        assert result.stderr == (f"Using the local control plane at {aws.endpoint} (for AWS: --region or --profile).\n")
        assert json.loads(result.stdout) == {"tenants": [], "cursor": None}
        host = "a1b2c3.execute-api.us-east-1.localhost"
        assert aws.asked == ["DescribeStacks Berth", f"GET {host}/tenants"]

    def test_there_is_no_note_with_the_option_local(self, scene: Scene, aws: FakeAws) -> None:
        assert self.berth(scene, aws, "tenants", "--local").stderr == ""

    def test_the_name_comes_from_the_option_or_else_from_the_variable(
        self, scene: Scene, aws: FakeAws, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BERTH_STACK", "Berth-dev")
        self.berth(scene, aws, "tenants", "--local")
        self.berth(scene, aws, "tenants", "--local", "--stack", "Berth-test")
        stacks = [asked for asked in aws.asked if asked.startswith("DescribeStacks")]
        assert stacks == ["DescribeStacks Berth-dev", "DescribeStacks Berth-test"]

    def test_requests_to_the_local_api_have_its_own_host(self, scene: Scene, aws: FakeAws) -> None:
        result = self.berth(scene, aws, "get-queue", "acme", "--local")
        assert result.exit_code == ExitCode.OK
        assert aws.asked[1:] == ["GET a1b2c3.execute-api.us-east-1.localhost/tenants/acme/queue"]

    def test_the_api_url_is_the_one_that_answers(self, aws: FakeAws) -> None:
        control_plane = find(Options(local=True), find_local=lambda: aws)
        assert control_plane.api_url == "https://a1b2c3.execute-api.us-east-1.localhost/"
        assert control_plane.stack.outputs["ApiUrl"] == OUTPUTS["ApiUrl"]

    def test_doctor_shows_the_url_that_answers(self, scene: Scene, aws: FakeAws) -> None:
        shown = self.berth(scene, aws, "doctor", "--local").stdout
        assert "https://a1b2c3.execute-api.us-east-1.localhost/ answers" in shown
        assert "amazonaws.com" not in shown

    def test_profiles_and_proxies_are_ignored(self, aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_PROFILE", "missing")
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        assert (
            find(Options(local=True), find_local=lambda: aws)
            .api()
            .send_request(GET_QUEUE, TenantIdRequest(tenant_id="acme"))
            .status
            == 200
        )

    def test_the_local_control_plane_is_asked_for_the_caller(self, aws: FakeAws) -> None:
        assert find(Options(local=True), find_local=lambda: aws).caller() == ADA
        assert aws.asked == ["GetCallerIdentity"]

    def test_it_is_not_deployed(self, scene: Scene, aws: FakeAws) -> None:
        aws.refusal = ("ValidationError", "Stack with id Berth does not exist")
        result = self.berth(scene, aws, "tenants", "--local")
        assert result.exit_code == ExitCode.NO_CONTROL_PLANE
        assert result.stderr == (
            f"Error: No control plane named Berth at {aws.endpoint}: deploy it with make up, or use --stack.\n"
        )


class TestAws:
    def test_its_api_is_found_by_the_stacks_outputs(self, on_aws: FakeAws) -> None:
        on_aws.outputs["ApiUrl"] = on_aws.endpoint
        found = find(Options(region="eu-west-1", stack="Other"), find_local=nothing).api()
        assert found.send_request(GET_QUEUE, TenantIdRequest(tenant_id="acme")).status == 200
        assert found.send_request(LIST_RELEASES, EmptyRequest()).status == 200
        host = on_aws.endpoint.removeprefix("http://")
        assert on_aws.asked == ["DescribeStacks Other", f"GET {host}/tenants/acme/queue", f"GET {host}/releases"]

    def test_the_events_api_is_found_by_the_outputs_of_the_event_planes_stack(self, on_aws: FakeAws) -> None:
        on_aws.outputs = {"EventsApiUrl": on_aws.endpoint}
        control_plane = find(Options(region="eu-west-1", stack="Other"), find_local=nothing)
        assert control_plane.events_api().send_request(LIST_RELEASES, EmptyRequest()).status == 200
        assert on_aws.asked == ["DescribeStacks OtherEvents", f"GET {on_aws.endpoint.removeprefix('http://')}/releases"]

    def test_without_an_event_plane_the_message_names_its_stack_and_the_setting(self, on_aws: FakeAws) -> None:
        on_aws.refusal = ("ValidationError", "Stack with id BerthEvents does not exist")
        with pytest.raises(ControlPlaneNotFound) as refused:
            find(Options(region="eu-west-1"), find_local=nothing).events_api()
        for text in ("no stack BerthEvents in eu-west-1", "Berth has no event plane", "make deploy", "berth:events"):
            assert text in str(refused.value)

    def test_a_note_says_where_the_command_acts(self, scene: Scene, on_aws: FakeAws) -> None:
        on_aws.outputs["ApiUrl"] = on_aws.endpoint
        # The runner's environment is without AWS.
        scene.environment |= {name: os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL")}
        world = World(find=partial(find, environment={}, find_local=nothing))
        result = scene.berth_in(world, ["tenants", "--region", "eu-west-1", "--json"])
        assert result.exit_code == ExitCode.OK
        assert result.stderr == "Using the control plane Berth in eu-west-1, account 111122223333.\n"

    def test_the_place_is_noted_once_before_the_first_request(
        self, on_aws: FakeAws, capsys: pytest.CaptureFixture[str]
    ) -> None:
        on_aws.outputs = {"ApiUrl": on_aws.endpoint, "EventsApiUrl": on_aws.endpoint}
        control_plane = find(Options(region="eu-west-1"), find_local=nothing)
        control_plane.events_api()
        control_plane.api()
        assert capsys.readouterr().err == ("Using the control plane Berth in eu-west-1, account 111122223333.\n")

    def test_the_stack_is_described_once(self, on_aws: FakeAws) -> None:
        control_plane = find(Options(region="eu-west-1"), find_local=nothing)
        control_plane.api()
        stack = control_plane.stack
        assert (stack.name, stack.where, stack.status) == ("Berth", "in eu-west-1", "CREATE_IN_PROGRESS")
        assert (stack.outputs, stack.version) == (OUTPUTS, "0.1.0")
        assert on_aws.asked == ["DescribeStacks Berth"]

    def test_the_caller_is_the_arn_from_sts(self, on_aws: FakeAws) -> None:
        assert find(Options(region="eu-west-1"), find_local=nothing).caller() == ADA
        assert on_aws.asked == ["GetCallerIdentity"]

    def test_the_caller_without_credentials(self) -> None:
        with pytest.raises(NoCredentialsError):
            find(Options(region="eu-west-1"), find_local=nothing).caller()

    def test_the_advice_for_another_name_has_the_deploy_command(self, on_aws: FakeAws) -> None:
        on_aws.refusal = ("ValidationError", "Stack with id Berth-dev does not exist")
        with pytest.raises(ControlPlaneNotFound, match=r'make deploy CDK_ARGS="-c berth:name=Berth-dev"'):
            find(Options(region="eu-west-1", stack="Berth-dev"), find_local=nothing).api()

    def test_a_stack_that_does_not_exist(self, on_aws: FakeAws) -> None:
        on_aws.refusal = ("ValidationError", "Stack with id Berth does not exist")
        expected = "No control plane named Berth in eu-west-1: deploy it with make deploy, or use --stack/--region.$"
        with pytest.raises(ControlPlaneNotFound, match=expected):
            find(Options(region="eu-west-1"), find_local=nothing).api()

    @pytest.mark.parametrize(
        ("exports", "message"),
        [
            (
                [
                    ("Berth-devTenantQueueServiceToken", "Berth-dev"),
                    ("AcmeTenantQueueServiceToken", "Acme"),
                    ("AcmeTenantQueueServiceToken", "somebody-else"),
                    ("TenantQueueServiceToken", "x"),
                    ("VpcId", "network"),
                ],
                "Existing control planes: Acme, Berth-dev.",
            ),
            ([("VpcId", "network")], "There are no control planes here."),
            ([], "There are no control planes here."),
        ],
    )
    def test_an_unknown_name_is_reported_with_the_existing_control_planes(
        self, on_aws: FakeAws, exports: list[tuple[str, str]], message: str
    ) -> None:
        on_aws.refusal = ("ValidationError", "Stack with id Harbour does not exist")
        on_aws.exports = exports
        expected = f"No control plane named Harbour in eu-west-1: .*use --stack/--region. {message}$"
        with pytest.raises(ControlPlaneNotFound, match=expected):
            find(Options(region="eu-west-1", stack="Harbour"), find_local=nothing).api()

    def test_a_stack_without_the_output_is_not_ready_or_not_berths(self, on_aws: FakeAws) -> None:
        on_aws.outputs.clear()
        expected = r"The stack Berth in eu-west-1 has no output ApiUrl \(its status is CREATE_IN_PROGRESS\)"
        with pytest.raises(ControlPlaneNotFound, match=expected):
            find(Options(region="eu-west-1"), find_local=nothing).api()

    def test_without_a_region_nothing_is_asked(self, on_aws: FakeAws) -> None:
        with pytest.raises(NoRegionError):
            find(Options(), find_local=nothing).api()
        assert on_aws.asked == []

    def test_without_credentials_the_sdk_error_is_raised(self) -> None:
        with pytest.raises(NoCredentialsError):
            find(Options(region="eu-west-1"), find_local=nothing).api()

    def test_no_such_profile(self) -> None:
        with pytest.raises(ProfileNotFound):
            find(Options(profile="missing"), find_local=nothing).api()
