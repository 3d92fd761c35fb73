"""The layer's data for botocore has what the functions call, and describes it as complete botocore does."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore
import pytest
from botocore import xform_name
from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape
from botocore.regions import EndpointResolver

from bench.packaged import layer_of_this_machine
from stacks.common.aws_models import CALLED_BY_BOTOCORE, OPERATIONS, operations_of, used_model
from stacks.common.function_code import LEFT_OUT, build_code, function_names, module_of
from stacks.project import ROOT
from tests.stacks import aws_calls

COMPLETE = Loader(extra_search_paths=[str(Path(botocore.__file__).parent / "data")])
CALLERS = [
    path
    for folder in ("orchestrator/adapters", "lambdas")
    for path in (ROOT / folder).rglob("*.py")
    if str(path.relative_to(ROOT)) not in LEFT_OUT
]


def model_of(loader: Loader, service: str) -> ServiceModel:
    return ServiceModel(loader.load_service_model(service, "service-2"), service)


METHODS = {
    xform_name(operation): (service, operation)
    for service in OPERATIONS
    for operation in model_of(COMPLETE, service).operation_names
} | {
    # Lambda has an operation GetPolicy, too, which nobody calls.
    xform_name(operation): (service, operation)
    for service, operations in OPERATIONS.items()
    for operation in operations
}
"""The methods of the clients of all used services. Adapters name nothing else like one of these."""


def called(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The operations that code calls, as methods or as names of paginators."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)) if name in METHODS:
                yield METHODS[name]


def services(tree: ast.AST) -> Iterator[str]:
    """The services for which code makes clients."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="client"), args=[ast.Constant(value=str(service))]):
                yield service


@pytest.fixture(scope="module")
def trees() -> list[ast.AST]:
    return [ast.parse(path.read_text(encoding="utf-8")) for path in CALLERS]


def test_the_list_has_every_operation_that_the_adapters_call_and_no_other(trees: list[ast.AST]) -> None:
    """If this fails, add the operation to ``stacks/common/aws_models.py``: without it, the call fails on AWS."""
    listed = {(service, operation) for service, operations in OPERATIONS.items() for operation in operations}
    assert {each for tree in trees for each in called(tree)} == listed


def test_the_list_has_every_service_of_which_there_is_a_client(trees: list[ast.AST]) -> None:
    assert {service for tree in trees for service in services(tree)} == set(OPERATIONS)


def test_no_function_uses_what_the_layer_has_no_data_for(trees: list[ast.AST]) -> None:
    without_data = {"get_waiter", "getattr"}
    names = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & without_data


def test_a_call_that_is_not_listed_is_found() -> None:
    tree = ast.parse("self._client.list_queues()\nself._client.get_paginator('list_stacks')\nclient('glacier')")
    assert set(called(tree)) == {("sqs", "ListQueues"), ("cloudformation", "ListStacks")}
    assert list(services(tree)) == ["glacier"]


def test_no_method_has_the_same_name_in_two_services() -> None:
    """Otherwise a call would not show of which service it is."""
    listed = [xform_name(operation) for service in OPERATIONS for operation in operations_of(service)]
    assert len(listed) == len(set(listed))


def test_an_operation_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="SQS has no operation GetMessage, TakeMessage"):
        used_model(COMPLETE.load_service_model("sqs", "service-2"), frozenset({"TakeMessage", "GetMessage"}))


def test_only_documentation_is_taken_out_of_a_shape() -> None:
    member = {"shape": "String", "documentation": "<p>Text.</p>"}
    shapes = {
        "Input": {"type": "structure", "members": {"documentation": member}, "documentation": "<p>Text.</p>"},
        "String": {"type": "string", "documentation": "<p>Text.</p>"},
        "Unused": {"type": "string"},
        "Fault": {"type": "structure", "members": {}, "exception": True},
    }
    operations = {
        "Call": {"name": "Call", "input": {"shape": "Input"}, "documentation": "<p>Text.</p>"},
        "Other": {"name": "Other"},
    }
    model = {
        "metadata": {"serviceId": "S"},
        "operations": operations,
        "shapes": shapes,
        "documentation": "<p>Text.</p>",
    }
    assert used_model(model, frozenset({"Call"})) == {
        "metadata": {"serviceId": "S"},
        "operations": {"Call": {"name": "Call", "input": {"shape": "Input"}}},
        "shapes": {
            "Input": {"type": "structure", "members": {"documentation": {"shape": "String"}}},
            "String": {"type": "string"},
            "Fault": {"type": "structure", "members": {}, "exception": True},
        },
    }


# The layer as it is deployed


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("packaged")
    build_code(built / "code", python=None)
    layer_of_this_machine(built / "layer")
    return built


@pytest.fixture(scope="module")
def used(packaged: Path) -> Loader:
    data = packaged / "layer" / "botocore" / "data"
    return Loader(extra_search_paths=[str(data)], include_default_search_paths=False)


def described(shape: Shape | None, within: tuple[str, ...] = ()) -> Any:
    """All that a shape says, but its documentation."""
    if shape is None or shape.name in within:
        return shape.name if shape else None
    inner = (*within, shape.name)
    parts = {name: described(member, inner) for name, member in getattr(shape, "members", {}).items()}
    for part in ("member", "key", "value"):
        if part in shape._shape_model:
            parts[f"<{part}>"] = described(getattr(shape, part), inner)
    return shape.name, shape.type_name, shape.serialization, shape.metadata, parts


@pytest.mark.parametrize("service", OPERATIONS)
def test_operations_are_described_as_in_complete_botocore(used: Loader, service: str) -> None:
    complete, ours = model_of(COMPLETE, service), model_of(used, service)
    assert set(ours.operation_names) == operations_of(service)
    assert ours.metadata == complete.metadata
    assert ours.api_version == complete.api_version
    for name in ours.operation_names:
        here, there = ours.operation_model(name), complete.operation_model(name)
        assert described(here.input_shape) == described(there.input_shape)
        assert described(here.output_shape) == described(there.output_shape)
        assert here.http == there.http
        assert here.auth_type == there.auth_type
        assert here.http_checksum == there.http_checksum
        assert here.idempotent_members == there.idempotent_members
        assert [each.name for each in here.static_context_parameters] == [
            each.name for each in there.static_context_parameters
        ]
    assert {each.name: described(each) for each in ours.error_shapes} == {
        each.name: described(each) for each in complete.error_shapes
    }


@pytest.mark.parametrize("service", OPERATIONS)
def test_endpoints_are_those_of_complete_botocore_in_all_regions(used: Loader, service: str) -> None:
    prefix = model_of(used, service).endpoint_prefix
    rules = "endpoint-rule-set-1"
    assert used.load_service_model(service, rules) == COMPLETE.load_service_model(service, rules)
    complete, ours = (EndpointResolver(loader.load_data("endpoints")) for loader in (COMPLETE, used))
    partitions = complete.get_available_partitions()
    assert ours.get_available_partitions() == partitions
    regions = [
        region
        for partition in partitions
        for region in complete.get_available_endpoints("sqs", partition, allow_non_regional=True)
    ]
    assert len(regions) > 30
    for region in regions:
        assert ours.construct_endpoint(prefix, region) == complete.construct_endpoint(prefix, region)


def run(source: str, packaged: Path) -> Any:
    """Run the source with nothing on the path but the code and the layer, and parse its output."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{packaged / 'code'}:{packaged / 'layer'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        **aws_calls.ENVIRONMENT,
    }
    command = [sys.executable, "-S", "-P", "-c", source]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_function_can_be_imported_with_only_its_code_and_the_layer(packaged: Path) -> None:
    modules = sorted(module_of(name) for name in function_names())
    found = run(f"import json, botocore, {', '.join(modules)}\nprint(json.dumps(botocore.__file__))", packaged)
    assert found == str(packaged / "layer" / "botocore" / "__init__.py")


def test_every_operation_makes_the_same_request_as_with_complete_botocore(packaged: Path) -> None:
    source = Path(aws_calls.__file__).read_text(encoding="utf-8")
    wanted = {service: sorted(operations_of(service)) for service in OPERATIONS}
    ours = run(f"{source}\nimport json\nprint(json.dumps(requests({wanted!r})))", packaged)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in aws_calls.ENVIRONMENT.items():
            patch.setenv(name, value)
        assert ours == json.loads(json.dumps(importlib.reload(aws_calls).requests(wanted)))
    assert len(ours) == sum(len(operations) for operations in (*OPERATIONS.values(), *CALLED_BY_BOTOCORE.values()))
