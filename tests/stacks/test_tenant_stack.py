"""The CDK base class that platforms subclass to give their tenants more than a queue."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, CfnOutput, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

from orchestrator.releases.checking import Surroundings, check_operators_template
from orchestrator.releases.service_permissions import Permissions
from stacks.project import ROOT
from stacks.tenant_stack import TenantStack

Add = Callable[[TenantStack], object]


def synthesised(folder: Path, *add: Add, version: str = "2.1.0") -> dict[str, Any]:
    app = App(outdir=str(folder), analytics_reporting=False)
    stack = TenantStack(app, "Tenant", version=version)
    for each in add:
        each(stack)
    app.synth()
    template: dict[str, Any] = json.loads((folder / "Tenant.template.json").read_text())
    return template


def files(stack: TenantStack) -> None:
    bucket = s3.Bucket(stack, "Files", enforce_ssl=True, removal_policy=RemovalPolicy.DESTROY)
    CfnOutput(stack, "FilesBucket", value=bucket.bucket_name)


def orders(stack: TenantStack) -> None:
    key = dynamodb.Attribute(name="orderId", type=dynamodb.AttributeType.STRING)
    table = dynamodb.Table(stack, "Orders", partition_key=key, billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST)
    CfnOutput(stack, "OrdersTable", value=table.table_name)


def priority(stack: TenantStack) -> None:
    dead_letters = sqs.DeadLetterQueue(queue=stack.dead_letter_queue, max_receive_count=3)
    sqs.Queue(stack, "Priority", dead_letter_queue=dead_letters, enforce_ssl=True)


def test_a_subclass_with_more_resources_can_be_published(tmp_path: Path) -> None:
    template = synthesised(tmp_path, files, orders, priority)
    surroundings = Surroundings("2.1.0", Permissions(frozenset({"s3:*", "dynamodb:*"})))
    assert check_operators_template(template, surroundings) == []
    assert {"InboundQueueUrl", "Version", "FilesBucket", "OrdersTable"} <= template["Outputs"].keys()


def test_the_queues_have_the_ids_of_berths_own_release(tmp_path: Path) -> None:
    template = synthesised(tmp_path)
    queues = [name for name, each in template["Resources"].items() if each["Type"] == "AWS::SQS::Queue"]
    assert sorted(queues) == ["DeadLetterQueue", "InboundQueue"]


@pytest.mark.parametrize(
    ("add", "rule"),
    [
        (lambda stack: s3.Bucket(stack, "Files", bucket_name="files"), "names"),
        (
            lambda stack: s3.Bucket(stack, "Files", auto_delete_objects=True, removal_policy=RemovalPolicy.DESTROY),
            "resource-types",
        ),
        (lambda stack: CfnOutput(stack, "Url", value="x", export_name="url"), "outputs"),
        (lambda stack: s3.Bucket(stack, "Files").grant_public_access(), "policies"),
    ],
    ids=["name", "custom resource", "export", "public"],
)
def test_a_template_that_breaks_the_contract_fails_at_synthesis(tmp_path: Path, add: Add, rule: str) -> None:
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        synthesised(tmp_path, add)
    assert rule in (tmp_path / "validation-report.json").read_text()


def test_a_version_of_berth_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        synthesised(tmp_path, version="0.9.0")


def test_the_example_of_the_documentation_can_be_published(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "templates.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    example = example.replace("App()", f"App(outdir={str(tmp_path)!r})")
    exec(compile(example, "docs/templates.md", "exec"), {"__name__": "__main__"})
    template = json.loads((tmp_path / "Tenant.template.json").read_text())
    assert check_operators_template(template, Surroundings("2.1.0", Permissions(frozenset({"s3:*"})))) == []
