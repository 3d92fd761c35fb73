"""Dependencies point inward, and the functions that are called most start light."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.commands import COMMANDS
from stacks.common.function_code import function_names, module_of

ROOT = Path(__file__).parents[2]
LOCAL_ONLY = ("orchestrator/local", "orchestrator/cli/control_plane.py")


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def imports(module: Path) -> list[str]:
    return list(imported_by(module.read_text(encoding="utf-8"), module.relative_to(ROOT).parent.parts))


def imported_by(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """Every module that the source imports, also inside functions and for types only."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *filter(None, [node.module])))
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def is_in(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def names(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


DOMAIN = {
    "common": set(),
    "releases": {"common"},
    "tenants": {"common", "releases"},
    "rollouts": {"common", "releases", "tenants"},
    "pool": {"common", "releases", "tenants"},
    "reconciling": {"common", "releases", "tenants", "rollouts", "pool"},
    "events": {"common"},
    "own_events": {"common", "tenants", "rollouts", "events"},
    "api": {"common", "releases", "tenants", "rollouts", "reconciling", "events"},
}
"""The domain's capabilities, and which others each of them may use."""
EDGES = {
    "adapters": {*DOMAIN},
    "ports": {*DOMAIN},
    "tenant_composition": {*DOMAIN, "ports"},
    "composition": {*DOMAIN, "ports", "tenant_composition"},
    "event_ports": {"common", "events", "own_events"},
    "event_composition": {"common", "event_ports", "events", "own_events"},
    "client": {"common", "tenants", "api"},
    "cli": {*DOMAIN, "adapters", "client", "console", "local"},
    "console": {*DOMAIN, "client", "cli"},
    "local": {*DOMAIN, "adapters", "client", "cli", "console"},
}
"""The packages around the domain: AWS, the composition roots, client, command line, console, emulator."""
DOMAIN_MODULES = modules(*(f"orchestrator/{capability}" for capability in DOMAIN))
VALIDATION = ROOT / "orchestrator" / "common" / "validation.py"
ADAPTERS = modules("orchestrator/adapters")
FUNCTIONS = modules("lambdas")
PRODUCT = modules("orchestrator", "lambdas", "stacks")


def test_there_is_something_to_check() -> None:
    assert {path.stem for path in (ROOT / "orchestrator").iterdir() if not path.name.startswith("__")} == {
        *DOMAIN,
        *EDGES,
    }
    assert {"sqs.py", "keys.py"} <= {path.name for path in ADAPTERS}
    assert {"get_queue.py", "runtime.py"} <= {path.name for path in FUNCTIONS}


@pytest.mark.parametrize("capability", [*DOMAIN, *EDGES])
def test_a_capability_uses_only_those_that_it_may(capability: str) -> None:
    may = {capability} | (DOMAIN | EDGES)[capability]
    own = [*modules(f"orchestrator/{capability}"), *(ROOT / "orchestrator").glob(f"{capability}.py")]
    used = {(module, name) for module in own for name in imports(module) if is_in(name, "orchestrator")}
    strange = [
        f"{module.relative_to(ROOT)} uses {name}"
        for module, name in sorted(used)
        if name != "orchestrator" and name.split(".")[1] not in may
    ]
    assert not strange


@pytest.mark.parametrize("module", DOMAIN_MODULES, ids=names(DOMAIN_MODULES))
def test_the_domain_imports_the_standard_library_json_schemas_in_one_place_and_wire_models_in_the_api(
    module: Path,
) -> None:
    allowed = ["orchestrator", *(["jsonschema"] if module == VALIDATION else [])]
    allowed += ["msgspec"] if module.parent.name == "api" else []
    assert not [name for name in imports(module) if not (is_standard(name) or is_in(name, *allowed))]


SHARED_BY_STACKS = modules("stacks/common")


@pytest.mark.parametrize("module", SHARED_BY_STACKS, ids=names(SHARED_BY_STACKS))
def test_shared_constructs_import_no_capability(module: Path) -> None:
    """A capability says of itself what is watched and shown, so that a new one changes nothing here."""
    shared = ("stacks.common", "stacks.project", "stacks.settings")
    assert not [name for name in imports(module) if is_in(name, "stacks") and not is_in(name, *shared)]


FOR_OTHER_PROGRAMS = ROOT / "stacks" / "wheel" / "berth" / "__init__.py"
"""Loads what others import from it when they do. No function and no stack has it."""
PACKAGES = [path for path in PRODUCT if path.name == "__init__.py" and path != FOR_OTHER_PROGRAMS]


@pytest.mark.parametrize("package", PACKAGES, ids=names(PACKAGES))
def test_a_package_imports_nothing_so_that_what_is_used_alone_is_loaded_alone(package: Path) -> None:
    assert not imports(package)


MAPS = [
    ROOT / "orchestrator" / package / "__init__.py"
    for package in (*DOMAIN, "events/delivery", "adapters", "adapters/dynamodb", "client", "console", "local")
]


@pytest.mark.parametrize("package", MAPS, ids=names(MAPS))
def test_a_package_says_what_each_of_its_modules_is(package: Path) -> None:
    name = ".".join(package.parent.relative_to(ROOT).parts)
    named = set(re.findall(rf":mod:`{name}\.(\w+)`", package.read_text(encoding="utf-8")))
    packages = {path.parent.name for path in package.parent.glob("*/__init__.py")}
    assert named == packages | {path.stem for path in package.parent.glob("[!_]*.py")}


def test_the_command_line_says_what_each_module_is_that_has_no_command() -> None:
    folder = ROOT / "orchestrator" / "cli"
    named = set(re.findall(r":mod:`orchestrator\.cli\.(\w+)`", (folder / "__init__.py").read_text(encoding="utf-8")))
    assert named == {path.stem for path in folder.glob("[!_]*.py")} - {each.module for each in COMMANDS.values()}


def test_the_map_of_the_product_names_each_of_its_parts() -> None:
    named = set(re.findall(r":mod:`orchestrator\.(\w+)`", (ROOT / "orchestrator" / "__init__.py").read_text("utf-8")))
    assert named == {*DOMAIN, *EDGES}


def test_the_tree_for_contributors_names_every_folder() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tree = page.split("```")[1]
    for package in ("orchestrator", "lambdas", "stacks"):
        _, *lines = re.split(r"\n(?=\S)", tree.partition(f"\n{package}/")[2])[0].splitlines()
        named = {word[:-1] for line in lines for word in takewhile(lambda word: word.endswith("/"), line.split())}
        assert named == {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}, package
    levels = set(re.findall(r"^\| `tests/([\w/]+)/`", page, re.MULTILINE))
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}
    assert levels == (folders - {"fakes"}) | {"e2e/enforced"}


def test_the_map_of_the_functions_names_each_of_them() -> None:
    folder = ROOT / "lambdas"
    named = set(re.findall(r"\b(\w+/\w+)\b", (folder / "__init__.py").read_text(encoding="utf-8")))
    assert named == {path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/[!_]*.py")}


@pytest.mark.parametrize("module", ADAPTERS, ids=names(ADAPTERS))
def test_adapters_import_no_entry_point(module: Path) -> None:
    outside = ("lambdas", "stacks", "orchestrator.cli", "orchestrator.local", "tests")
    assert not [name for name in imports(module) if is_in(name, *outside)]


@pytest.mark.parametrize("module", FUNCTIONS, ids=names(FUNCTIONS))
def test_functions_import_the_domain_and_the_adapters(module: Path) -> None:
    outside = ("orchestrator.cli", "orchestrator.local")
    allowed = ("orchestrator", "lambdas", "aws_lambda_powertools")
    strange = [
        name for name in imports(module) if is_in(name, *outside) or not (is_standard(name) or is_in(name, *allowed))
    ]
    assert not strange


@pytest.mark.parametrize("module", FUNCTIONS, ids=names(FUNCTIONS))
def test_a_function_uses_no_other_function(module: Path) -> None:
    others = {module_of(name) for name in function_names()}
    assert not [name for name in imports(module) if is_in(name, *others)]


@pytest.mark.parametrize("module", DOMAIN_MODULES, ids=names(DOMAIN_MODULES))
def test_the_domain_reads_neither_clock_nor_environment(module: Path) -> None:
    assert not [name for name in imports(module) if is_in(name, "os", "time", "logging", "random", "uuid", "socket")]
    assert not re.search(r"datetime\.(now|utcnow|today)\(", module.read_text(encoding="utf-8"))


ELSEWHERE = [path for path in PRODUCT if not path.relative_to(ROOT).as_posix().startswith(LOCAL_ONLY)]


@pytest.mark.parametrize("module", ELSEWHERE, ids=names(ELSEWHERE))
def test_nothing_that_is_deployed_knows_of_the_emulator(module: Path) -> None:
    assert "ministack" not in module.read_text(encoding="utf-8").lower()
    assert not [name for name in imports(module) if is_in(name, "orchestrator.local")]


@pytest.mark.parametrize("module", PRODUCT, ids=names(PRODUCT))
def test_the_product_never_imports_its_tests(module: Path) -> None:
    assert not [name for name in imports(module) if is_in(name, "tests")]


def test_the_walk_sees_imports_wherever_they_stand() -> None:
    source = """
import boto3
def later():
    from orchestrator.local import emulator
if TYPE_CHECKING:
    import a.b as c
from . import keys
from ..records import Audit
"""
    assert set(imported_by(source, ("orchestrator", "adapters"))) == {
        "boto3",
        "orchestrator.local",
        "orchestrator.local.emulator",
        "a.b",
        "orchestrator.adapters",
        "orchestrator.adapters.keys",
        "orchestrator.records",
        "orchestrator.records.Audit",
    }


LOADED = """
import json, sys

opened = []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)

import {module}
from {runtime} import use_cases

models = [path.split("/botocore/data/")[1] for path in opened if "/botocore/data/" in path]
models = sorted({{model.split("/")[0] for model in models if "/" in model}})
print(json.dumps({{"modules": sorted(sys.modules), "made": sorted(vars(use_cases.ports)), "models": models}}))
"""


def run_as_function(source: str) -> Any:
    """Run the source in a new process with a function's environment, and parse the last line of its output."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "BERTH_"))},
        "AWS_DEFAULT_REGION": "eu-west-1",
        "BERTH_TABLE": "berth",
        "BERTH_VERSION": "0.1.0",
        "BERTH_TEMPLATE_VERSION": "0.1.0",
        "BERTH_LINGER_SECONDS": "60",
        "BERTH_CREATE_ON_GET_QUEUE": "true",
        "BERTH_EVENTS_TABLE": "berth-events",
        "BERTH_CONTENTS_BUCKET": "berth-contents",
    }
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout.splitlines()[-1])


def utilities_of_powertools(modules: list[str]) -> set[str]:
    """What is loaded besides its logger and metrics, which themselves load one of these utilities."""
    prefix = "aws_lambda_powertools.utilities."
    return {name.removeprefix(prefix) for name in modules if name.startswith(prefix)} - {"jmespath_utils"}


def test_functions_of_the_control_plane_load_nothing_of_the_event_plane() -> None:
    functions = sorted(module for module in map(module_of, function_names()) if not is_in(module, "lambdas.events"))
    assert "lambdas.api.operators" in functions
    loaded = run_as_function(f"import json, sys, {', '.join(functions)}\nprint(json.dumps(sorted(sys.modules)))")
    api = re.compile(r"orchestrator\.api\.(event_|for_operators|receiving_)")
    assert [name for name in loaded if is_in(name, "orchestrator.events") or api.match(name)] == []


@pytest.mark.parametrize("function", ["ingest", "receive"])
def test_the_functions_that_take_events_start_light(function: str) -> None:
    response = run_as_function(LOADED.format(module=f"lambdas.events.{function}", runtime="lambdas.event_runtime"))
    loaded = {module.partition(".")[0] for module in response["modules"]}
    assert not loaded & {"jsonschema", "pydantic", "boto3", "typer", "rich", "aws_cdk"}
    assert not utilities_of_powertools(response["modules"])
    others = ("tenants", "releases", "rollouts", "reconciling", "composition", "client", "events.delivery")
    assert not [name for name in response["modules"] if is_in(name, *(f"orchestrator.{other}" for other in others))]
    assert response["models"] == ["dynamodb"]


def test_get_queues_function_starts_light() -> None:
    response = run_as_function(LOADED.format(module="lambdas.api.get_queue", runtime="lambdas.runtime"))
    loaded = {module.partition(".")[0] for module in response["modules"]}
    assert not loaded & {"jsonschema", "msgspec", "pydantic", "boto3", "typer", "rich", "aws_cdk"}
    assert not utilities_of_powertools(response["modules"])
    by_others = ("lifecycle", "admission", "limits", "schemas", "operation_transitions", "ledger", "writes")
    rarely = ("provisioning", "decisions", "state", "history", "listings", "messages")
    services = (
        "cloudformation",
        "cloudwatch",
        "s3",
        "sqs",
        "stepfunctions",
        "sts",
        "dynamodb.rollouts",
        "dynamodb.create_counts",
        "dynamodb.applying",
    )
    later = {
        "common.validation",
        *(f"api.{name}" for name in ("fields", "queue_routes", "queueless_answers", "routes", "reading")),
        *(f"tenants.{name}" for name in (*by_others, *rarely)),
        *(f"adapters.{name}" for name in services),
    }
    every = {
        path.relative_to(ROOT / "orchestrator").with_suffix("").as_posix().replace("/", ".")
        for path in modules("orchestrator")
    }
    assert later <= every, "these are modules"
    assert not {f"orchestrator.{name}" for name in later} & set(response["modules"])
    assert not [
        name for name in response["modules"] if is_in(name, "orchestrator.rollouts", "orchestrator.reconciling")
    ]
    assert set(response["made"]) == {"settings", "clock", "_dynamodb", "table"}
    assert response["models"] == ["dynamodb"]


def test_the_types_of_every_module_of_the_cdk_that_is_used_are_checked() -> None:
    """The others are skipped, because all of the CDK takes minutes; one that was forgotten would pass for anything."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (checked,) = (
        set(override["module"])
        for override in settings["tool"]["mypy"]["overrides"]
        if override["follow_imports"] == "normal"
    )
    imported = {
        name
        for module in modules("stacks")
        for name in imports(module)
        if re.fullmatch(r"aws_cdk(\.aws_[a-z0-9_]+)?", name)
    }
    assert imported == checked
