"""The wheel, installed as others install it: into an environment of its own, beside an app with folders like ours."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest

import stacks.wheel.berth as public
from orchestrator.common.own_versions import berth_version, template_version
from stacks.project import ROOT
from stacks.wheel.building import ImportNotMoved, NotTracked, check_tracked, files_of, in_the_wheel
from tests.documents import CONTROL_PLANE, EVENT_PLANE

NAMES_OF_THE_CHECKOUT = {"orchestrator", "lambdas", "stacks", "statemachines", "tests", "bench"}
SOURCES = ("orchestrator", "stacks", "pyproject.toml", "version.txt", "README.md", "LICENSE")

APP = """\
from aws_cdk import App

from lambdas import HANDLER
from orchestrator import OURS
from stacks.shop import ShopStack, ShopTenant

app = App(outdir="cdk.out", analytics_reporting=False)
ShopStack(app, "Shop", handler=HANDLER + OURS)
ShopTenant(app, "ShopTenant", version="2.1.0")
app.synth()
"""
SHOP = """\
from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_iam as iam

from berth import Client, RequestRefused
from berth.cdk import OnDelete, TenantQueue, TenantStack


class ShopStack(Stack):
    def __init__(self, scope, construct_id, *, handler):
        super().__init__(scope, construct_id)
        acme = TenantQueue(self, "Acme", tenant_id="acme", on_delete="retain")
        TenantQueue(self, "Globex", tenant_id="globex", on_delete=OnDelete.DELETE, control_plane="Berth-dev")
        producer = iam.Role(self, "Producer", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        acme.queue.grant_send_messages(producer)
        CfnOutput(self, "Handler", value=f"{handler} {Client.__name__} {issubclass(RequestRefused, Exception)}")


class ShopTenant(TenantStack):
    pass
"""


@dataclass(frozen=True)
class Installed:
    wheel: Path
    environment: Path

    def run(self, *command: str, cwd: Path) -> str:
        """The output of a program of the environment, which finds nothing of the checkout."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "BERTH_", "PYTHON"))}
        done = subprocess.run(
            [str(self.environment / "bin" / command[0]), *command[1:]],
            cwd=cwd,
            env={**kept, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def pip(*arguments: str) -> None:
    options = ("--quiet", "--disable-pip-version-check", "--no-input")
    subprocess.run([sys.executable, "-m", "pip", *options, *arguments], check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    # Setuptools leaves its own folders beside the sources, so it gets a copy of them.
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (folder / "source").mkdir(exist_ok=True)
            shutil.copy(source, folder / "source")
    offline = ("--no-deps", "--no-index")
    pip("wheel", *offline, "--no-build-isolation", "--wheel-dir", str(folder / "dist"), str(folder / "source"))
    (wheel,) = (folder / "dist").glob("*.whl")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True, timeout=120)
    pip("--python", str(environment / "bin" / "python"), "install", *offline, "--no-compile", str(wheel))
    # The dependencies come from this environment. Its own .pth files, one of which leads to the checkout, do not count.
    (site_packages,) = environment.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(f"{Path(boto3.__file__).parents[1]}\n")
    return Installed(wheel, environment)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A CDK app of another team. Its folders have the names of ours."""
    for name, content in {
        "app.py": APP,
        "stacks/__init__.py": "",
        "stacks/shop.py": SHOP,
        "lambdas/__init__.py": "HANDLER = 'handler of '\n",
        "orchestrator/__init__.py": "OURS = 'the shop'\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def imported_from(source: str) -> Iterator[str]:
    """Every module that the source imports, or imports something from, wherever that stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_the_wheel_has_one_name_and_its_modules_import_each_other_below_it(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as archive:
        names = archive.namelist()
        sources = {name: archive.read(name).decode() for name in names if name.endswith(".py")}
    assert {name.partition("/")[0] for name in names} == {"berth", f"berth-{berth_version()}.dist-info"}
    assert installed.wheel.name == f"berth-{berth_version()}-py3-none-any.whl"
    assert {"berth/version.txt", "berth/py.typed", "berth/cdk.py", "berth/orchestrator/cli/app.py"} <= set(names)
    assert not [name for name in names if name.startswith("berth/stacks/releases/")]
    imported = {module for source in sources.values() for module in imported_from(source)}
    assert not {module for module in imported if module.partition(".")[0] in NAMES_OF_THE_CHECKOUT}
    there = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in sources}
    assert {module for module in imported if module.partition(".")[0] == "berth"} <= there


def test_an_app_with_folders_of_the_same_names_uses_the_client_and_a_tenants_queue(
    installed: Installed, app: Path
) -> None:
    installed.run("python", "app.py", cwd=app)
    template = json.loads((app / "cdk.out" / "Shop.template.json").read_text())
    resources = [each["Properties"] for each in template["Resources"].values() if each["Type"] == "Custom::TenantQueue"]
    assert [(each["TenantId"], each["OnDelete"], each["ServiceToken"]) for each in resources] == [
        ("acme", "retain", {"Fn::ImportValue": "BerthTenantQueueServiceToken"}),
        ("globex", "delete", {"Fn::ImportValue": "Berth-devTenantQueueServiceToken"}),
    ]
    assert template["Outputs"]["Handler"]["Value"] == "handler of the shop Client True"


def test_the_command_works_without_a_checkout(installed: Installed, app: Path) -> None:
    assert installed.run("berth", "--version", cwd=app) == (
        f"berth {berth_version()}, tenant template {template_version()}\n"
    )
    for command in (["berth", "--help"], ["python", "-m", "berth", "--help"]):
        shown = installed.run(*command, cwd=app)
        assert "Gives every tenant of a platform its own inbound queue." in shown
        assert "get-queue" in shown


def test_the_installed_command_prints_the_openapi_documents(installed: Installed, app: Path) -> None:
    assert json.loads(installed.run("berth", "openapi", cwd=app)) == CONTROL_PLANE.json
    assert json.loads(installed.run("berth", "openapi", "--events", cwd=app)) == EVENT_PLANE.json


def test_the_help_loads_no_sdk(installed: Installed, app: Path) -> None:
    source = "import sys, berth, berth.orchestrator.cli.app; print([each for each in sys.modules if 'boto' in each])"
    assert installed.run("python", "-c", source, cwd=app) == "[]\n"


def test_every_name_that_others_import_is_there() -> None:
    for name in public.__all__:
        assert getattr(public, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Server'"):
        _ = public.Server  # type: ignore[attr-defined]


def test_a_source_distribution_has_what_the_wheel_is_made_from() -> None:
    files = files_of(ROOT)
    assert all((ROOT / source).is_file() for source in files.values())
    assert files[Path("berth/__init__.py")] == Path("stacks/wheel/berth/__init__.py")
    assert files[Path("berth/orchestrator/client/client.py")] == Path("orchestrator/client/client.py")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Sources of a small wheel, without git."""
    (tmp_path / "pyproject.toml").write_text('[tool.berth.wheel]\n"orchestrator" = "berth/orchestrator"\n')
    (tmp_path / "orchestrator").mkdir()
    (tmp_path / "orchestrator" / "reviewed.py").touch()
    return tmp_path


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, timeout=60)


def test_a_file_that_git_does_not_track_is_not_shipped(sources: Path) -> None:
    git(sources, "init")
    git(sources, "add", ".")
    check_tracked(sources, files_of(sources).values())
    (sources / ".gitignore").write_text("*_ignored.py\n")
    for name in ("left_behind.py", "also_ignored.py"):
        (sources / "orchestrator" / name).touch()
    with pytest.raises(
        NotTracked, match=r"does not track: orchestrator/also_ignored\.py, orchestrator/left_behind\.py\. Add them"
    ):
        check_tracked(sources, files_of(sources).values())


def test_sources_without_git_are_taken_as_they_are(sources: Path) -> None:
    check_tracked(sources, files_of(sources).values())


def test_a_checkout_that_git_cannot_read_builds_no_wheel(sources: Path) -> None:
    (sources / ".git").write_text("gitdir: nowhere\n")
    with pytest.raises(NotTracked, match="git could not say which files belong to the wheel: "):
        check_tracked(sources, files_of(sources).values())


@pytest.mark.parametrize(
    ("source", "moved"),
    [
        ("from orchestrator.cli import app\n", "from berth.orchestrator.cli import app\n"),
        (
            "def f():\n    from stacks.tenant_queue import A\n",
            "def f():\n    from berth.stacks.tenant_queue import A\n",
        ),
        ("from orchestrators import app\n", "from orchestrators import app\n"),
        ("import json\nfrom . import near\n", "import json\nfrom . import near\n"),
        ('SERVER = "orchestrator.local.server"\n', 'SERVER = "orchestrator.local.server"\n'),
    ],
)
def test_only_imports_of_our_own_modules_are_moved(source: str, moved: str) -> None:
    assert in_the_wheel(source) == moved


def test_an_import_that_binds_a_name_of_the_checkout_is_refused() -> None:
    with pytest.raises(ImportNotMoved, match=r"import orchestrator\.cli"):
        in_the_wheel("import json\nimport orchestrator.cli\n")
