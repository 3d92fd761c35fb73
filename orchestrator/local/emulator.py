"""Starts, finds and stops the emulator, which is ministack from this virtual environment."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from orchestrator.local.access_key import AccessKey
from orchestrator.local.errors import LocalError
from orchestrator.local.home import CHECKOUT, Home, Record, polls

# BERTH_LOCAL_HOME allows several emulators from one checkout, as the demo and the tests need.
DEFAULT_HOME = Path(os.environ.get("BERTH_LOCAL_HOME") or CHECKOUT / ".berth")
DEFAULT_PORT = 4566
ACCOUNT = "000000000000"
REGION = "us-east-1"

START_SECONDS = 30
SETTLE_SECONDS = 20
SAVE_SECONDS = 60
KILL_SECONDS = 5

CHANGING = (
    "CREATE_IN_PROGRESS",
    "UPDATE_IN_PROGRESS",
    "DELETE_IN_PROGRESS",
    "ROLLBACK_IN_PROGRESS",
    "UPDATE_ROLLBACK_IN_PROGRESS",
    "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
)

# The emulator is never behind this machine's proxy.
_opener = build_opener(ProxyHandler({}))


@dataclass(frozen=True)
class Stopped:
    """The result of stopping the emulator."""

    state_kept: bool
    interrupted: tuple[str, ...] = ()
    """Stacks that were being changed. The emulator never finishes those changes."""


@dataclass(frozen=True)
class Emulator:
    """The emulator of one home directory. Several can run side by side, each in its own home."""

    port: int = DEFAULT_PORT
    home: Path = DEFAULT_HOME
    keep_state: bool = True
    server: str = "orchestrator.local.server"
    """The module that the emulator's process runs. Tests have another, which enforces permissions."""
    wait_scale: float = 0.3
    """The part of their time that Wait states take. They are as long as AWS needs, where a stack takes minutes. Here a
    stack takes a second. The clock is not scaled: a step that asks for a wait of a second may be called again too soon,
    and asks for another one."""

    def __post_init__(self) -> None:
        # Absolute, because the emulator's processes have other working directories.
        object.__setattr__(self, "home", self.home.absolute())

    @classmethod
    def running(cls, home: Path = DEFAULT_HOME) -> "Emulator | None":
        """The emulator that is running in this home, if any."""
        files = Home(home)
        record = files.record()
        if record is None or not files.is_locked():
            return None
        return cls(record.port, home, record.keep_state)

    @classmethod
    def is_stopped(cls, home: Path = DEFAULT_HOME) -> bool:
        """True if an emulator was used in this home, and is not running."""
        return cls.running(home) is None and Home(home).has_state()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self._files.log

    def is_up(self) -> bool:
        """True if the emulator is running in this home, on this port, and answers."""
        running = Emulator.running(self.home)
        return running is not None and running.port == self.port and self._answers()

    def has_crashed(self) -> bool:
        """True if the emulator ended without an orderly stop. Changes since its last orderly stop are lost."""
        return self._files.record() is not None and not self._files.is_locked()

    def client_environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """``base`` without its AWS settings, plus the settings for clients of this emulator."""
        kept = {name: value for name, value in (base or {}).items() if not name.startswith("AWS_")}
        key = self._access_key()
        return kept | {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": key.access_key_id,
            "AWS_SECRET_ACCESS_KEY": key.secret_access_key,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }

    def session_settings(self) -> dict[str, str]:
        """The arguments of a boto3 session for this emulator."""
        environment = self.client_environment()
        return {
            "aws_access_key_id": environment["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": environment["AWS_SECRET_ACCESS_KEY"],
            "region_name": environment["AWS_REGION"],
        }

    def api_url(self, deployed: str) -> str:
        """The URL of an HTTP API on the emulator, which finds the API by the id in the host name."""
        api_id = urlsplit(deployed).netloc.split(".")[0]
        return f"http://{api_id}.execute-api.localhost:{self.port}"

    def start(self) -> None:
        """Start the emulator and wait until it answers. If it is running or starting already, only wait."""
        if self.keep_state:
            self._files.check_format()
        for _ in polls(START_SECONDS):
            lock = self._files.take_lock()
            if lock is not None:
                return self._start_with(lock)
            if self._found():
                return None
        raise LocalError(f"The emulator in {self.home} does not answer. Log: {self.log}")

    def stop(self) -> Stopped | None:
        """Stop the emulator and save its state. None if it is not running."""
        record = self._files.record()
        if record is None or not self._files.is_locked():
            return None
        interrupted = self._let_stacks_settle() if record.keep_state else ()
        with suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGTERM)
        for _ in polls(SAVE_SECONDS):
            if self._files.record() is None or not self._files.is_locked():
                break
        state_kept = self._files.record() is None
        self._kill(record)
        return Stopped(state_kept, interrupted)

    def forget_state(self) -> None:
        """Delete the saved state. The emulator must not be running."""
        lock = self._files.take_lock()
        if lock is None:
            raise LocalError("The emulator is still running.")
        try:
            self._files.forget_state()
        finally:
            os.close(lock)

    def cloudformation(self, action: str, **parameters: str) -> str:
        """CloudFormation's response, as XML; empty if it failed.

        The request does not go through the SDK, so that this machine's profiles cannot break it.
        """
        url = f"{self.endpoint}/?{urlencode({'Action': action, 'Version': '2010-05-15', **parameters})}"
        request = Request(url, headers=self._signature("GET", url, "cloudformation"))  # noqa: S310 (our own emulator)
        try:
            with _opener.open(request, timeout=10) as response:
                return str(response.read(), "utf-8")
        except (OSError, HTTPException):
            return ""

    def _signature(self, method: str, url: str, service: str) -> dict[str, str]:
        """The headers that sign this request; empty if somebody has deleted the key."""
        key = self._files.access_key()
        if key is None:
            return {}
        request = AWSRequest(method, url)
        SigV4Auth(Credentials(key.access_key_id, key.secret_access_key), service, REGION).add_auth(request)
        return dict(request.headers.items())

    def _access_key(self) -> AccessKey:
        key = self._files.access_key()
        if key is None:
            raise LocalError(f"There is no access key in {self.home}. Restart the emulator: make down up")
        return key

    @property
    def _files(self) -> Home:
        return Home(self.home)

    def _found(self) -> bool:
        record = self._files.record()
        if record is None:
            return False
        if record.port != self.port:
            raise LocalError(
                f"The emulator is already running on port {record.port}. Use that port, or stop it first: make down"
            )
        return self._answers()

    def _answers(self) -> bool:
        try:
            with _opener.open(f"{self.endpoint}/_ministack/health", timeout=2):
                return True
        except (OSError, HTTPException):
            return False

    def _start_with(self, lock: int) -> None:
        try:
            self._files.make_private()
            if self._files.record() is None:
                self.log.unlink(missing_ok=True)
            self._files.remove_record()
            self._refuse_taken_port()
            shutil.rmtree(self._files.tmp, ignore_errors=True)
            self._files.tmp.mkdir()
            log_size = self.log.stat().st_size if self.log.exists() else 0
            self._spawn(lock)
        finally:
            os.close(lock)
        for _ in polls(START_SECONDS):
            if not self._files.is_locked():
                raise LocalError(f"The emulator did not start. {self._log_since(log_size)}")
            if self._answers():
                return
        record = self._files.record()
        if record is not None:
            self._kill(record)
        raise LocalError(f"The emulator did not answer within {START_SECONDS} s. {self._log_since(log_size)}")

    def _refuse_taken_port(self) -> None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                raise LocalError(
                    f"Port {self.port} is in use by another program. "
                    f"Choose another port: BERTH_LOCAL_PORT={self.port + 1} make up"
                )

    def _spawn(self, lock: int) -> None:
        arguments = [str(self._files.root), str(self.port), "keep" if self.keep_state else "forget"]
        with self.log.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 (our own interpreter, our own module)
                [sys.executable, "-m", self.server, *arguments],
                cwd=CHECKOUT,
                env=self._server_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(lock,),
                # Not reached by Ctrl-C, and the leader of the process group of its Lambda workers.
                start_new_session=True,
            )
        # The emulator outlives this process, and is found by its lock. Setting a return code stops Popen from warning.
        process.returncode = 0

    def _server_environment(self) -> dict[str, str]:
        """The emulator's whole environment. Lambda workers inherit it, so it has none of the user's variables."""
        files = self._files
        kept = "1" if self.keep_state else "0"
        key = self._access_key()
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(files.tmp),
            "TMPDIR": str(files.tmp),
            "GATEWAY_PORT": str(self.port),
            # The key of its root user. Functions get the same secret, with the account id as the access key id.
            "AWS_ACCESS_KEY_ID": key.access_key_id,
            "AWS_SECRET_ACCESS_KEY": key.secret_access_key,
            "LOG_LEVEL": "WARNING",
            # The level of functions, which Lambda sets. Without it, they would take the emulator's own level.
            "AWS_LAMBDA_LOG_LEVEL": "INFO",
            "PERSIST_STATE": kept,
            "STATE_DIR": str(files.running / "state"),
            "S3_PERSIST": kept,
            "S3_DATA_DIR": str(files.running / "s3"),
            # A worker is a process of 30 MB. More concurrent calls than this are throttled, as on AWS. Idle workers
            # beyond a function's first end after 90 seconds.
            "LAMBDA_ACCOUNT_CONCURRENCY": "40",
            "LAMBDA_WARM_TTL_SECONDS": "90",
            "SFN_WAIT_SCALE": str(self.wait_scale),
            # The IoT service would listen on a fixed port on all interfaces.
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
        }

    def _log_since(self, offset: int) -> str:
        with self.log.open("rb") as log:
            log.seek(offset)
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
        quoted = "".join(f"\n  | {line}" for line in lines[-8:])
        return f"The end of its log, {self.log}:{quoted}"

    def _let_stacks_settle(self) -> tuple[str, ...]:
        """Wait until no stack is being changed, because changes do not continue after a restart. Returns the rest."""
        filters = {f"StackStatusFilter.member.{n}": status for n, status in enumerate(CHANGING, start=1)}
        changing: list[str] = []
        for _ in polls(SETTLE_SECONDS):
            changing = re.findall(r"<StackName>(.*?)</StackName>", self.cloudformation("ListStacks", **filters))
            if not changing:
                break
        return tuple(changing)

    def _kill(self, record: Record) -> None:
        """Kill the emulator, which waits for Lambda calls, and its workers, of which a busy one outlives it."""
        # If the group is gone, Linux reports ProcessLookupError and macOS PermissionError.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(record.pid, signal.SIGKILL)
        for _ in polls(KILL_SECONDS):
            if not self._files.is_locked():
                break
        shutil.rmtree(self._files.tmp, ignore_errors=True)


def free_port() -> int:
    """A port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
