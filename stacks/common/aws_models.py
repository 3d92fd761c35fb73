"""The parts of botocore's data that the functions use: services, operations, shapes and endpoints.

botocore finds services and operations in data files, and has those of all of AWS. Reading what no function calls takes
more time in a cold start than importing botocore does. The layer gets the same files with only the operations below,
and without documentation. botocore itself is not changed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import DataNotFoundError
from botocore.loaders import Loader

OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "apigatewayv2": ("GetStage",),
    "cloudformation": (
        "ContinueUpdateRollback",
        "CreateChangeSet",
        "CreateStack",
        "DeleteChangeSet",
        "DeleteStack",
        "DescribeAccountLimits",
        "DescribeChangeSet",
        "DescribeStackDriftDetectionStatus",
        "DescribeStackEvents",
        "DescribeStackResource",
        "DescribeStackResources",
        "DescribeStacks",
        "DetectStackDrift",
        "ExecuteChangeSet",
        "GetTemplate",
        "ListStackResources",
        "RollbackStack",
        "UpdateStack",
    ),
    "cloudwatch": ("DescribeAlarmHistory", "DescribeAlarms", "GetMetricStatistics"),
    "dynamodb": (
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "Scan",
        "TransactWriteItems",
        "UpdateItem",
    ),
    "events": ("PutEvents",),
    "iam": ("GetPolicy", "GetPolicyVersion"),
    "kms": ("Decrypt", "Encrypt"),
    "lambda": ("GetAccountSettings", "Invoke"),
    "s3": ("DeleteObject", "DeleteObjects", "GetObject", "ListObjectsV2", "PutObject"),
    "sesv2": ("SendEmail",),
    "sqs": ("GetQueueAttributes", "GetQueueUrl", "SendMessage", "SendMessageBatch"),
    "stepfunctions": ("DescribeExecution", "ListExecutions", "SendTaskHeartbeat", "SendTaskSuccess", "StartExecution"),
    "sts": ("AssumeRole",),
}
"""The operations that the adapters call. A test compares this list with the adapters' code."""

CALLED_BY_BOTOCORE: Mapping[str, tuple[str, ...]] = {"s3": ("HeadBucket",)}
"""Operations that botocore calls itself. After a redirect it asks for the region of the bucket."""

_DOCUMENTATION = frozenset({"documentation", "documentationUrl", "examples"})
_COMMON_FILES = ("_retry.json", "partitions.json", "sdk-default-configuration.json")

Json = dict[str, Any]


def keep_used_models(data: Path) -> None:
    """Replace botocore's data by the part of it that the functions use."""
    kept = data.with_name("used-data")
    write_used_models(data, kept)
    shutil.rmtree(data)
    kept.rename(data)


def write_used_models(source: Path, target: Path) -> None:
    # The loader also merges files that add to others.
    loader = Loader(extra_search_paths=[str(source)], include_default_search_paths=False)
    prefixes = set()
    for service in OPERATIONS:
        version = loader.determine_latest_version(service, "service-2")
        model = used_model(loader.load_service_model(service, "service-2"), operations_of(service))
        prefixes |= {service, model["metadata"]["endpointPrefix"]}
        folder = target / service / version
        _write(folder / "service-2.json", model)
        _write(folder / "endpoint-rule-set-1.json", loader.load_service_model(service, "endpoint-rule-set-1"))
        _write(folder / "paginators-1.json", _used_pages(loader, service))
    for name in _COMMON_FILES:
        shutil.copyfile(source / name, target / name)
    _write(target / "endpoints.json", _used_endpoints(loader.load_data("endpoints"), prefixes))


def operations_of(service: str) -> frozenset[str]:
    return frozenset((*OPERATIONS[service], *CALLED_BY_BOTOCORE.get(service, ())))


def used_model(model: Json, operations: frozenset[str]) -> Json:
    """The model of a service with only these operations and the shapes that they need."""
    missing = operations - model["operations"].keys()
    if missing:
        raise ValueError(f"{model['metadata']['serviceId']} has no operation {', '.join(sorted(missing))}.")
    used = {name: _bare(model["operations"][name]) for name in sorted(operations)}
    shapes = {name: _bare_shape(shape) for name, shape in model["shapes"].items()}
    # A service may answer with an error that its operation does not list, so every error is kept.
    wanted = [name for name, shape in shapes.items() if shape.get("exception")]
    wanted += [name for operation in used.values() for name in _shapes_of(operation)]
    kept: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept.add(name)
            wanted += _shapes_of(shapes[name])
    return {
        **_bare(model),
        "operations": used,
        "shapes": {name: shape for name, shape in shapes.items() if name in kept},
    }


def _shapes_of(definition: Json) -> Iterator[str]:
    """The names of the shapes to which an operation or a shape refers."""
    references = [definition.get(key) for key in ("input", "output", "member", "key", "value")]
    references += [*definition.get("errors", ()), *definition.get("members", {}).values()]
    return (reference["shape"] for reference in references if reference)


def _bare_shape(shape: Json) -> Json:
    # A member may have the name "documentation", so only the definitions of members are searched for it.
    bare = {name: _bare(value) if name in ("member", "key", "value") else value for name, value in _bare(shape).items()}
    if "members" in bare:
        bare["members"] = {name: _bare(member) for name, member in bare["members"].items()}
    return bare


def _bare(definition: Json) -> Json:
    return {name: value for name, value in definition.items() if name not in _DOCUMENTATION}


def _used_pages(loader: Loader, service: str) -> Json:
    try:
        pages = loader.load_service_model(service, "paginators-1")["pagination"]
    except DataNotFoundError:
        pages = {}
    return {"pagination": {name: page for name, page in pages.items() if name in operations_of(service)}}


def _used_endpoints(endpoints: Json, prefixes: set[str]) -> Json:
    """The endpoints of the used services, in all partitions and regions of AWS."""
    partitions = [
        {**each, "services": {name: service for name, service in each["services"].items() if name in prefixes}}
        for each in endpoints["partitions"]
    ]
    return {**endpoints, "partitions": partitions}


def _write(file: Path, content: Json) -> None:
    # Small files are read faster than they are unpacked.
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
