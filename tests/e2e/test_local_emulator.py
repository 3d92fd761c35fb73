"""The local emulator saves its state, reports errors clearly, and affects nothing else on the machine."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.adapters.sessions import session_without_profile
from orchestrator.local.emulator import Emulator, free_port
from orchestrator.local.errors import LocalError
from orchestrator.local.home import Home, Record
from orchestrator.local.server import keeping_state
from tests.present import present

ROLE = "arn:aws:iam::000000000000:role/any"
PASS = json.dumps({"StartAt": "Done", "States": {"Done": {"Type": "Pass", "End": True}}})
SLOW = """
import socket, threading
def handler(event, context):
    held_open = socket.create_connection(("127.0.0.1", {port}))
    threading.Event().wait(50)
"""
TEMPLATE = json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}})

NewEmulator = Callable[..., Emulator]


@pytest.fixture
def new_emulator(tmp_path: Path) -> Iterator[NewEmulator]:
    """Creates emulators, and stops them at the end of the test."""
    made: list[Emulator] = []

    def make(name: str = "home", *, port: int | None = None) -> Emulator:
        made.append(Emulator(port=port or free_port(), home=tmp_path / name))
        return made[-1]

    yield make
    for emulator in made:
        emulator.stop()


@pytest.fixture
def emulator(new_emulator: NewEmulator) -> Emulator:
    return new_emulator()


def client(emulator: Emulator, service: str) -> Any:
    session = session_without_profile(emulator.session_settings())
    return session.client(service, endpoint_url=emulator.endpoint)


def pid_of(emulator: Emulator) -> int:
    record = present(Home(emulator.home).record())
    return record.pid


def kill(emulator: Emulator) -> None:
    """Kill the emulator, as a crash would."""
    pid = pid_of(emulator)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def add_function(emulator: Emulator, name: str, code: str) -> Any:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as package:
        package.writestr("index.py", code)
    functions = client(emulator, "lambda")
    functions.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler="index.handler",
        Role=ROLE,
        Timeout=60,
        Code={"ZipFile": archive.getvalue()},
    )
    return functions


def call(functions: Any, name: str) -> Any:
    return json.load(functions.invoke(FunctionName=name)["Payload"])


def run_command(command: str, home: Path, port: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "orchestrator.local", command],
        env=os.environ | {"BERTH_LOCAL_HOME": str(home), "BERTH_LOCAL_PORT": str(port)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_state_survives_a_restart(emulator: Emulator) -> None:
    emulator.start()
    client(emulator, "dynamodb").create_table(
        TableName="tenants",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    )
    row = {"pk": {"S": "acme"}, "seen": {"N": "1"}}
    client(emulator, "dynamodb").put_item(TableName="tenants", Item=row)
    queue = client(emulator, "sqs").create_queue(QueueName="inbound")["QueueUrl"]
    client(emulator, "sqs").send_message(QueueUrl=queue, MessageBody="hello")
    client(emulator, "s3").create_bucket(Bucket="releases")
    client(emulator, "s3").put_object(Bucket="releases", Key="0.1.0/template", Body=b"{}")
    add_function(emulator, "answer", "def handler(event, context):\n    return 42\n")
    machine = client(emulator, "stepfunctions").create_state_machine(name="create", definition=PASS, roleArn=ROLE)[
        "stateMachineArn"
    ]
    api = client(emulator, "apigatewayv2").create_api(Name="queues", ProtocolType="HTTP")["ApiId"]
    stacks = client(emulator, "cloudformation")
    stacks.create_stack(StackName="acme", TemplateBody=TEMPLATE)
    stacks.get_waiter("stack_create_complete").wait(StackName="acme", WaiterConfig={"Delay": 1})

    stopped = present(emulator.stop())
    assert stopped.state_kept
    assert not emulator.is_up()
    emulator.start()

    assert client(emulator, "dynamodb").scan(TableName="tenants")["Items"] == [row]
    received = client(emulator, "sqs").receive_message(QueueUrl=queue)["Messages"]
    assert [message["Body"] for message in received] == ["hello"]
    assert client(emulator, "s3").get_object(Bucket="releases", Key="0.1.0/template")["Body"].read() == b"{}"
    assert call(client(emulator, "lambda"), "answer") == 42
    assert client(emulator, "stepfunctions").describe_state_machine(stateMachineArn=machine)["name"] == "create"
    assert client(emulator, "apigatewayv2").get_api(ApiId=api)["Name"] == "queues"
    [stack] = client(emulator, "cloudformation").describe_stacks(StackName="acme")["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE"


def test_after_a_crash_the_state_is_that_of_the_last_stop(emulator: Emulator) -> None:
    emulator.start()
    client(emulator, "s3").create_bucket(Bucket="kept")
    emulator.stop()
    emulator.start()
    client(emulator, "s3").create_bucket(Bucket="lost")
    assert not emulator.has_crashed()

    kill(emulator)
    assert emulator.has_crashed()
    assert Emulator.running(emulator.home) is None
    emulator.start()

    assert emulator.is_up()
    assert not emulator.has_crashed()
    assert [bucket["Name"] for bucket in client(emulator, "s3").list_buckets()["Buckets"]] == ["kept"]


def test_state_that_could_not_be_saved_completely_is_discarded(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.write_record(Record(pid=1, port=1, keep_state=True))
    home.lay_out_state()

    async def fails_to_save(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 (the ASGI interface)
        logging.getLogger("persistence").error("failed to save dynamodb")
        await send({"type": "lifespan.shutdown.complete"})

    async def ignore(event: Any) -> None: ...

    lifespan: Any = {"type": "lifespan"}
    nothing: Any = None
    asyncio.run(keeping_state(fails_to_save, home, keep=True)(lifespan, nothing, ignore))

    assert home.record() is not None, "as after a crash"
    assert not (tmp_path / "saved").exists()


def test_stopping_neither_waits_for_lambda_calls_nor_leaves_their_processes(emulator: Emulator) -> None:
    emulator.start()
    with socket.create_server(("127.0.0.1", 0)) as calls:
        calls.settimeout(20)
        functions = add_function(emulator, "slow", SLOW.format(port=calls.getsockname()[1]))
        functions.invoke(FunctionName="slow", InvocationType="Event")
        worker, _ = calls.accept()

    stopped = emulator.stop()

    assert stopped is not None
    assert stopped.state_kept
    with worker:
        worker.settimeout(5)
        assert worker.recv(1) == b"", "its process has ended"


def test_a_port_in_use_is_reported_with_advice(new_emulator: NewEmulator) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LocalError, match=rf"Port {port} is in use .* BERTH_LOCAL_PORT={port + 1} make up"):
            new_emulator(port=port).start()


def test_a_failed_start_shows_the_log(new_emulator: NewEmulator) -> None:
    with socket.socket() as silent:  # Bound but not listening, so only binding it again shows that it is in use.
        silent.bind(("127.0.0.1", 0))
        emulator = new_emulator(port=silent.getsockname()[1])
        with pytest.raises(LocalError, match=r"(?s)did not start.*emulator\.log:.*[Aa]ddress already in use"):
            emulator.start()
    assert not emulator.has_crashed()


def test_a_process_id_that_belongs_to_another_program_is_not_killed(emulator: Emulator) -> None:
    stranger = os.getpid()
    emulator.home.mkdir()
    Home(emulator.home).write_record(Record(stranger, emulator.port, keep_state=True))

    assert emulator.has_crashed()
    assert Emulator.running(emulator.home) is None
    assert emulator.stop() is None
    emulator.start()

    assert pid_of(emulator) != stranger


def test_several_emulators_run_side_by_side(new_emulator: NewEmulator) -> None:
    one, other = new_emulator("one"), new_emulator("other")
    one.start()
    other.start()
    client(one, "s3").create_bucket(Bucket="only-here")

    assert client(other, "s3").list_buckets()["Buckets"] == []
    one.stop()
    assert not one.is_up()
    assert other.is_up()


def test_an_emulator_that_keeps_no_state_starts_again_in_its_home(new_emulator: NewEmulator) -> None:
    """As the tour does after the demo."""
    for _ in range(2):
        emulator = replace(new_emulator(), keep_state=False)
        emulator.start()
        emulator.stop()


def test_starting_twice_finds_the_running_emulator(emulator: Emulator, new_emulator: NewEmulator) -> None:
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda _: emulator.start(), range(3)))
    pid = pid_of(emulator)

    emulator.start()

    assert pid_of(emulator) == pid
    assert Emulator.running(emulator.home) == emulator
    with pytest.raises(LocalError, match=f"already running on port {emulator.port}"):
        new_emulator().start()


def test_the_users_environment_does_not_reach_functions(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "real")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "real")
    monkeypatch.setenv("DATABASE_PASSWORD", "real")
    emulator.start()
    functions = add_function(emulator, "seen", "import os\ndef handler(event, context):\n    return dict(os.environ)\n")

    seen = call(functions, "seen")

    assert "real" not in seen.values()
    assert seen["HOME"].startswith(str(emulator.home))


def test_functions_log_at_lambdas_level_and_not_at_the_emulators_own(emulator: Emulator) -> None:
    emulator.start()
    code = "from aws_lambda_powertools import Logger\ndef handler(event, context):\n    return Logger().log_level\n"
    assert call(add_function(emulator, "level", code), "level") == logging.INFO


def test_clients_get_all_settings_and_none_of_the_users_aws_settings(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make_private()
    environment = Emulator(port=1234, home=tmp_path).client_environment(
        {"PATH": "/bin", "AWS_PROFILE": "prod", "AWS_SESSION_TOKEN": "t"}
    )

    key = present(home.access_key())
    assert environment["AWS_ACCESS_KEY_ID"] == key.access_key_id
    assert environment["AWS_SECRET_ACCESS_KEY"] == key.secret_access_key
    assert environment["PATH"] == "/bin"
    assert environment["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1234"
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN"} & set(environment)


def test_before_the_first_start_an_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"no access key .* make down up"):
        Emulator(port=1234, home=tmp_path).client_environment()


def test_env_prints_variables_with_which_other_tools_work(emulator: Emulator) -> None:
    assert "is not running" in run_command("env", emulator.home, emulator.port).stderr
    emulator.start()
    client(emulator, "sqs").create_queue(QueueName="seen")
    shown = run_command("env", emulator.home, emulator.port)
    assert shown.returncode == 0, shown.stderr

    tool = "import boto3; print(boto3.client('sqs').list_queues()['QueueUrls'])"
    done = subprocess.run(
        ["sh", "-euc", f'{shown.stdout}\n"$PYTHON" -c "$TOOL"'],
        env=os.environ | {"PYTHON": sys.executable, "TOOL": tool},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "seen" in done.stdout


def test_env_unsets_the_users_own_aws_settings(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "prod")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "real")
    emulator.start()
    shown = run_command("env", emulator.home, emulator.port).stdout.splitlines()
    assert shown[:2] == ["unset AWS_PROFILE", "unset AWS_SESSION_TOKEN"]


def test_an_emulator_without_its_key_can_be_stopped(emulator: Emulator) -> None:
    """This is the situation after an upgrade from a version without keys while the emulator was running."""
    emulator.start()
    (emulator.home / "access-key.json").unlink()
    assert run_command("down", emulator.home, emulator.port).returncode == 0
    assert not emulator.is_up()


def test_stopping_when_nothing_is_running_succeeds(tmp_path: Path) -> None:
    for command in ("down", "status", "reset"):
        done = run_command(command, tmp_path, free_port())
        assert (done.returncode, done.stderr) == (0, ""), command


def test_down_saves_the_state_and_reset_deletes_it(emulator: Emulator) -> None:
    emulator.start()
    assert emulator.endpoint in run_command("status", emulator.home, emulator.port).stdout

    assert "state is saved" in run_command("down", emulator.home, emulator.port).stdout
    assert (emulator.home / "saved").exists()

    assert run_command("reset", emulator.home, emulator.port).returncode == 0
    assert not (emulator.home / "saved").exists()


def test_an_error_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        failed = run_command("up", tmp_path, other.getsockname()[1])

    assert failed.returncode == 1
    [line] = failed.stderr.splitlines()
    assert line.startswith("error: Port ")
