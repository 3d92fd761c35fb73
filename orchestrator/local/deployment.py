"""Deploys the CDK app onto the emulator, with the same app and the same CDK command line as on AWS."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from orchestrator.local.adjusting import adjust
from orchestrator.local.emulator import ACCOUNT, REGION, Emulator
from orchestrator.local.errors import LocalError
from orchestrator.local.home import CHECKOUT, polls, take_lock
from orchestrator.tenants.names import DEFAULT_NAME, Names

CDK = CHECKOUT / "node_modules" / ".bin" / "cdk"
# A first deployment takes about ten seconds. The limit is for slow or busy machines.
DEPLOY_SECONDS = 600

# The settings that differ from a deployment on AWS.
CONTEXT = {
    # The emulator sends no CloudFormation events, so every wait for one ends by the timeout.
    "berth:stackEvents": "false",
    "berth:awaitStackSeconds": "1",
    # Stacks take seconds here, not a minute.
    "berth:retryAfterSeconds": "2",
    # The emulator's change sets are ready when CreateChangeSet returns.
    "berth:awaitReviewSeconds": "1",
    # Lambda workers import from this virtual environment; on AWS a layer is built.
    "berth:dependencies": "host",
    # Each concurrent call is a process here. More calls than this are throttled, as on AWS.
    "berth:getQueueConcurrency": "4",
    # Credentials for queues are off by default on AWS. Here they are on, so that users can try them.
    "berth:credentialsSeconds": "900",
    # Each tenant in flight is several processes here. More tenants at once make a rollout slower.
    "berth:rolloutConcurrency": "8",
    # Tests and benchmarks create tenants faster than a platform should.
    "berth:createsPerMinute": "600",
    # Functions return at once here, so the last function of an aborted execution has ended after two seconds.
    "berth:lingerSeconds": "2",
    # The emulator's message counts are exact and current.
    "berth:emptyForSeconds": "1",
    # No function of the event plane runs longer than a few seconds here.
    "berth:purgeSettleSeconds": "10",
    # Each concurrent call is a process, as for getQueue.
    "berth:ingestConcurrency": "4",
    "berth:receiveConcurrency": "2",
    "berth:tenantEventsConcurrency": "2",
    "berth:deliverConcurrency": "4",
    "berth:eventsEnvironment": "test",
    # Receivers of webhooks are programs on this machine.
    "berth:loopbackDestinations": "true",
}
CONCURRENCY = {
    "GetQueueFunctionName": "berth:getQueueConcurrency",
    "IngestFunctionName": "berth:ingestConcurrency",
    "ReceiveFunctionName": "berth:receiveConcurrency",
    "TenantEventsFunctionName": "berth:tenantEventsConcurrency",
    "DeliverEventsFunctionName": "berth:deliverConcurrency",
}
"""The setting with the concurrency of a function, by the output with the function's name."""

Progress = Callable[[str], None]


def deploy(emulator: Emulator, progress: Progress, **context: str) -> dict[str, str]:
    """Deploy or update the control plane and the event plane, and return the control plane's outputs.

    ``progress`` is called when a step begins. ``context`` has settings, without their prefix, that override the local
    ones. Another ``name`` deploys another control plane beside the existing ones.
    """
    names = Names.parse(context.get("name", DEFAULT_NAME))
    name = names.control_plane
    _refuse_name_that_differs_only_by_case(emulator, name)
    if not CDK.exists():
        raise LocalError("The CDK command line is not installed. Install it: make install")
    with _alone(emulator.home, progress) as lock:
        log = emulator.home / "deploy.log"
        log.unlink(missing_ok=True)
        # A killed run may have left half of an assembly.
        shutil.rmtree(_assembly(emulator), ignore_errors=True)
        if not _stack_is_complete(emulator, "CDKToolkit"):
            progress("Preparing the emulator for the CDK")
            # Run outside the app's folder, because the CDK would synthesise the app first, which is not needed.
            _cdk(emulator, lock, emulator.home, "bootstrap", f"aws://{ACCOUNT}/{REGION}")
        settings = CONTEXT | {f"berth:{setting}": value for setting, value in context.items()}
        stacks = _stacks(names, settings)
        planes = "the control plane and the event plane" if len(stacks) > 1 else "the control plane"
        progress(f"Deploying {planes}")
        options = ["--require-approval", "never"]
        # No change set is created, because nobody would review it here.
        options += ["--method", "direct"]
        options += ["--outputs-file", str(_outputs_file(emulator, name))]
        _cdk(emulator, lock, CHECKOUT, "deploy", *stacks, *options, *_app_options(emulator, settings))
        deployed = outputs(emulator, name)
        every_output = deployed | events_outputs(emulator, name)
        adjust(
            emulator,
            concurrency={
                every_output[output]: int(settings[setting])
                for output, setting in CONCURRENCY.items()
                if output in every_output
            },
            events_table=every_output.get("EventsTableName"),
        )
    return deployed


def compare(emulator: Emulator, **context: str) -> None:
    """Show what :func:`deploy` with the same settings would change. The CDK writes it to the terminal."""
    names = Names.parse(context.get("name", DEFAULT_NAME))
    settings = CONTEXT | {f"berth:{setting}": value for setting, value in context.items()}
    with _alone(emulator.home, lambda _step: None) as lock:
        options = ["--method", "change-set", *_app_options(emulator, settings)]
        _cdk(emulator, lock, CHECKOUT, "diff", *_stacks(names, settings), *options, shown=True)


def _stacks(names: Names, settings: Mapping[str, str]) -> list[str]:
    return [names.control_plane] if settings.get("berth:events") == "false" else [names.control_plane, names.events]


def _app_options(emulator: Emulator, settings: Mapping[str, str]) -> list[str]:
    """The options with which the CDK synthesises the app for the emulator."""
    # The emulator's CloudFormation receives the responses of custom resources itself.
    response_url = {"berth:responseUrlPrefix": response_url_prefix(emulator)}
    options = ["--output", str(_assembly(emulator))]
    for key, value in {**response_url, **settings}.items():
        options += ["--context", f"{key}={value}"]
    return options


def deploy_app(emulator: Emulator, module: str, stack: str, context: Mapping[str, str]) -> None:
    """Deploy a stack of another CDK app, which is a module of this checkout, onto an emulator with a control plane."""
    options = ["--app", f"python -m {module}", "--output", str(_assembly(emulator))]
    options += ["--require-approval", "never", "--method", "direct"]
    for key, value in context.items():
        options += ["--context", f"{key}={value}"]
    with _alone(emulator.home, lambda _step: None) as lock:
        _cdk(emulator, lock, CHECKOUT, "deploy", stack, *options)


def _refuse_name_that_differs_only_by_case(emulator: Emulator, name: str) -> None:
    """AWS refuses the second deployment, because function names would clash. The emulator would replace the first's."""
    for file in emulator.home.glob("outputs-*.json"):
        other = file.stem.removeprefix("outputs-")
        if other != name and other.lower() == name.lower():
            raise LocalError(
                f"The name {name} differs only by case from that of the existing control plane {other}. Their "
                "functions and tenants' stacks would have the same names: choose another name."
            )


def response_url_prefix(emulator: Emulator) -> str:
    """The URL at which the emulator's CloudFormation receives the responses of custom resources."""
    return f"http://localhost:{emulator.port}/_ministack/cfn-response/"


def outputs(emulator: Emulator, name: str = DEFAULT_NAME) -> dict[str, str]:
    """The outputs of the control plane's last deployment; empty if it was never deployed."""
    return _all_outputs(emulator, name).get(name, {})


def events_outputs(emulator: Emulator, name: str = DEFAULT_NAME) -> dict[str, str]:
    """The outputs of the event plane of a control plane; empty if it is not deployed."""
    return _all_outputs(emulator, name).get(Names.parse(name).events, {})


def _all_outputs(emulator: Emulator, name: str) -> dict[str, dict[str, str]]:
    """The outputs of every stack of the last deployment of a control plane, by the stack's name."""
    try:
        found: dict[str, dict[str, str]] = json.loads(_outputs_file(emulator, name).read_text())
    except FileNotFoundError:
        return {}
    return found


def is_deployed(emulator: Emulator, name: str = DEFAULT_NAME) -> bool:
    return _stack_is_complete(emulator, name)


def forget(emulator: Emulator) -> None:
    """Delete the files that deployments wrote. The emulator's own state is not among them."""
    for file in emulator.home.glob("outputs*.json"):
        file.unlink()
    shutil.rmtree(_assembly(emulator), ignore_errors=True)


def _assembly(emulator: Emulator) -> Path:
    return emulator.home / "cdk.out"


def _outputs_file(emulator: Emulator, name: str) -> Path:
    """One file per control plane, because the CDK overwrites the file."""
    return emulator.home / f"outputs-{name}.json"


@contextmanager
def _alone(home: Path, progress: Progress) -> Iterator[int]:
    """Allow one deployment at a time. The CDK inherits the lock, so a CDK whose parent was killed still counts."""
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


def _cdk(emulator: Emulator, lock: int, folder: Path, *arguments: str, shown: bool = False) -> None:
    """Run the CDK. Its output is written to a log, unless it is ``shown`` on the terminal."""
    command = [str(CDK), *arguments, "--no-notices", "--no-version-reporting", "--no-color"]
    path = emulator.home / "deploy.log"
    with path.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 (the CDK of this checkout)
            command,
            cwd=folder,
            env=_cdk_environment(emulator),
            stdin=subprocess.DEVNULL,
            stdout=None if shown else log,
            stderr=None if shown else subprocess.STDOUT,
            pass_fds=(lock,),
            start_new_session=True,
        )
        try:
            failed = process.wait(DEPLOY_SECONDS) != 0
        except subprocess.TimeoutExpired:
            raise LocalError(f"cdk {arguments[0]} did not end within {DEPLOY_SECONDS} s. Log: {path}") from None
        finally:
            # The CDK runs the app as a process of its own. Both have to end.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if failed and shown:
        raise LocalError(f"cdk {arguments[0]} failed.")
    if failed:
        raise LocalError(f"cdk {arguments[0]} failed. The end of its log, {path}:{_end_of(path)}")


def _cdk_environment(emulator: Emulator) -> dict[str, str]:
    """The CDK's whole environment. It has none of the user's AWS or CDK settings."""
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
            # The CDK's own check of the templates takes half of the synthesis, and its findings are only warnings.
            "CDK_VALIDATION": "false",
            # The CDK library (180 MB) is unpacked once per virtual environment, not once per home.
            "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path(sys.prefix) / "jsii"),
        }
    )


def _end_of(log: Path) -> str:
    """The last lines of the log, without empty lines and lines about resources that succeeded."""
    succeeded = re.compile(r"\| \w+_(IN_PROGRESS|COMPLETE) +\|")
    lines = log.read_text(errors="replace").splitlines()
    relevant = [line for line in lines if line.strip() and not succeeded.search(line)]
    return "".join(f"\n  | {line}" for line in relevant[-12:])
