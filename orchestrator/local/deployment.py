"""Deploys the CDK app onto the emulator: the same app, and the same command line, as on AWS."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.local.adjusting import adjust
from orchestrator.local.emulator import ACCOUNT, REGION, Emulator
from orchestrator.local.errors import LocalError
from orchestrator.local.home import CHECKOUT, polls, take_lock
from orchestrator.tenants.names import DEFAULT_NAME, Names

CDK = CHECKOUT / "node_modules" / ".bin" / "cdk"
# A first deployment takes about ten seconds; this is for machines that are busy or slow.
DEPLOY_SECONDS = 600

# All that is deployed differently from AWS.
CONTEXT = {
    # The emulator sends no CloudFormation events: waiting for one ends by its timeout, so make it short.
    "berth:awaitStackSeconds": "1",
    # It draws up change sets before it answers.
    "berth:awaitReviewSeconds": "1",
    # Lambda workers import from this virtual environment; on AWS a layer is built.
    "berth:dependencies": "host",
    # Each call at once is a process here: more than this wait for their turn, as throttled callers do on AWS.
    "berth:getQueueConcurrency": "4",
    # So that they can be tried: on AWS getQueue gives no credentials unless that is switched on.
    "berth:credentialsSeconds": "900",
    # Each tenant at once is several processes here: more than this make a rollout slower, not faster.
    "berth:rolloutConcurrency": "8",
    # Tests and benchmarks create tenants faster than a platform should.
    "berth:createsPerMinute": "600",
    # Functions answer at once here, so what an aborted execution had called has ended by then.
    "berth:lingerSeconds": "2",
    # The emulator counts messages exactly, and at once.
    "berth:emptyForSeconds": "1",
}

Progress = Callable[[str], None]


def deploy(emulator: Emulator, progress: Progress, **context: str) -> dict[str, str]:
    """Deploy, or bring up to date, and return the stack's outputs.

    ``progress`` hears each step begin; ``context`` are settings other than the local ones, without their prefix. With
    a ``name`` it is another control plane, beside those that are there.
    """
    name = Names.parse(context.get("name", DEFAULT_NAME)).control_plane
    _check_no_other_by_the_same_letters(emulator, name)
    if not CDK.exists():
        raise LocalError("The CDK command line is not installed. Install it: make install")
    with _alone(emulator.home, progress) as lock:
        log = emulator.home / "deploy.log"
        log.unlink(missing_ok=True)
        # What a killed run left half written is not worth looking at.
        shutil.rmtree(_assembly(emulator), ignore_errors=True)
        if not _stack_is_complete(emulator, "CDKToolkit"):
            progress("Preparing the emulator for the CDK")
            # Away from the app, which it would synthesise first, to no purpose.
            _cdk(emulator, lock, emulator.home, "bootstrap", f"aws://{ACCOUNT}/{REGION}")
        progress("Deploying the control plane")
        options = ["--require-approval", "never", "--output", str(_assembly(emulator))]
        # Creates the stack without a change set in between: nobody would look at it.
        options += ["--method", "direct"]
        options += ["--outputs-file", str(_outputs_file(emulator, name))]
        # Its CloudFormation takes the answers of custom resources itself.
        here = {"berth:responseUrlPrefix": response_url_prefix(emulator)}
        for key, value in (CONTEXT | here | {f"berth:{each}": value for each, value in context.items()}).items():
            options += ["--context", f"{key}={value}"]
        _cdk(emulator, lock, CHECKOUT, "deploy", name, *options)
        deployed = outputs(emulator, name)
        adjust(
            emulator,
            get_queue_function=deployed["GetQueueFunctionName"],
            get_queue_concurrency=int(CONTEXT["berth:getQueueConcurrency"]),
        )
    return deployed


def _check_no_other_by_the_same_letters(emulator: Emulator, name: str) -> None:
    """AWS refuses the second: both would have functions of the same names. The emulator lets it replace the first's."""
    for file in emulator.home.glob("outputs-*.json"):
        other = file.stem.removeprefix("outputs-")
        if other != name and other.lower() == name.lower():
            raise LocalError(
                f"There is a control plane {other}, whose name differs from {name} only by case. Both would have "
                "tenants' stacks and functions of the same names: choose another name."
            )


def response_url_prefix(emulator: Emulator) -> str:
    """Where the emulator's CloudFormation takes the answers of custom resources."""
    return f"http://localhost:{emulator.port}/_ministack/cfn-response/"


def outputs(emulator: Emulator, name: str = DEFAULT_NAME) -> dict[str, str]:
    """The outputs of the stack as it was deployed last; empty when it never was."""
    try:
        found: dict[str, dict[str, str]] = json.loads(_outputs_file(emulator, name).read_text())
    except FileNotFoundError:
        return {}
    return found.get(name, {})


def is_deployed(emulator: Emulator, name: str = DEFAULT_NAME) -> bool:
    return _stack_is_complete(emulator, name)


def forget(emulator: Emulator) -> None:
    """Delete what deployments left on disk, beside the emulator's own state."""
    for file in emulator.home.glob("outputs*.json"):
        file.unlink()
    shutil.rmtree(_assembly(emulator), ignore_errors=True)


def _assembly(emulator: Emulator) -> Path:
    return emulator.home / "cdk.out"


def _outputs_file(emulator: Emulator, name: str) -> Path:
    """One per control plane: the CDK overwrites the file."""
    return emulator.home / f"outputs-{name}.json"


@contextmanager
def _alone(home: Path, progress: Progress) -> Iterator[int]:
    """One deployment at a time, counting one whose parent was killed: the CDK inherits the lock."""
    path = home / "deploy.lock"
    lock = take_lock(path)
    if lock is None:
        progress("Waiting for another deployment to end")
        for _ in polls(DEPLOY_SECONDS):
            lock = take_lock(path)
            if lock is not None:
                break
        else:
            raise LocalError("Another deployment is still running. Try again later.")
    try:
        yield lock
    finally:
        os.close(lock)


def _stack_is_complete(emulator: Emulator, name: str) -> bool:
    described = emulator.cloudformation("DescribeStacks", StackName=name)
    return re.search(r"<StackStatus>(CREATE|UPDATE)_COMPLETE</StackStatus>", described) is not None


def _cdk(emulator: Emulator, lock: int, folder: Path, *arguments: str) -> None:
    command = [str(CDK), *arguments, "--no-notices", "--no-version-reporting", "--no-color"]
    path = emulator.home / "deploy.log"
    with path.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 (the CDK of this checkout)
            command,
            cwd=folder,
            env=_cdk_environment(emulator),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(lock,),
            start_new_session=True,
        )
        try:
            failed = process.wait(DEPLOY_SECONDS) != 0
        except subprocess.TimeoutExpired:
            raise LocalError(f"cdk {arguments[0]} did not end within {DEPLOY_SECONDS} s. Its log: {path}") from None
        finally:
            # It runs the app as a process of its own: interrupted, both have to go.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if failed:
        raise LocalError(f"cdk {arguments[0]} failed. The end of its log, {path}:{_last_words(path)}")


def _cdk_environment(emulator: Emulator) -> dict[str, str]:
    """All that it sees: nothing of the user's AWS or CDK settings."""
    binaries = Path(sys.prefix) / "bin"
    cdk_home = emulator.home / "cdk"
    cdk_home.mkdir(exist_ok=True)
    return emulator.client_environment(
        {
            # `python` and `node` are those of this virtual environment.
            "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "LANG": "C.UTF-8",
            "HOME": str(cdk_home),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "CDK_DISABLE_VERSION_CHECK": "true",
            # The CDK library is unpacked once for the environment (180 MB), not once for every home.
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path(sys.prefix) / "jsii"),
        }
    )


def _last_words(log: Path) -> str:
    """The last lines that say something: not the resources that went well."""
    went_well = re.compile(r"\| \w+_(IN_PROGRESS|COMPLETE) +\|")
    lines = log.read_text(errors="replace").splitlines()
    told = [line for line in lines if line.strip() and not went_well.search(line)]
    return "".join(f"\n  | {line}" for line in told[-12:])
