"""``python -m stacks.clean_up --name berth-verify-123 --record FILE``: delete a control plane that was only for a test.

It deletes the control plane's tenants with their messages, its stacks, and the tables, buckets and keys that
CloudFormation keeps. It refuses every control plane whose name does not begin with ``berth-verify-``, and deletes
nothing that was not in this control plane's own stacks. What was in them is written to the record first. Every step
can be repeated. The exit code is 1 if something is left.

The workflow `.github/workflows/verify-on-aws.yml` runs this; docs/verify.md says how to run it by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from boto3.session import Session
from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from orchestrator.common.errors import BerthError
from orchestrator.tenants.names import Names
from stacks.settings import parse_name

PREFIX = "berth-verify-"
"""The prefix of the names of control planes that may be deleted."""
TAG = "berth-verify"
"""The tag that the deployment sets to the control plane's name. A KMS key has no name by which it could be recognised.
"""
_GONE = "DELETE_COMPLETE"
_MISSING = frozenset({"ResourceNotFoundException", "NoSuchBucket", "NotFoundException"})
_KEY_DAYS = 7
"""KMS deletes no key at once. This is the shortest time that it allows."""
_DELAY_SECONDS = 10
_MAX_ATTEMPTS = 180

Berth = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


class Refused(BerthError):
    """The request must not be carried out."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a stack that may outlive its stack."""

    kind: str
    """The type of CloudFormation."""
    name: str
    """The physical id."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class StackNow:
    name: str
    stack_id: str
    status: str


class CleanUp:
    """Deletes what belongs to one control plane. ``run_berth`` runs the command line on that control plane."""

    def __init__(self, names: Names, session: Session, *, run_berth: Berth, show: Callable[[str], None]) -> None:
        if not names.control_plane.startswith(PREFIX):
            raise Refused(
                f"Only control planes named {PREFIX}... are deleted. {names} is not one, so nothing was done."
            )
        self._names = names
        self._run_berth = run_berth
        self._show = show
        self._stacks = session.client("cloudformation")
        self._tables = session.client("dynamodb")
        self._buckets = session.client("s3")
        self._keys: Any = session.client("kms")  # Its types are not installed.

    def carry_out(self, record: Path) -> list[str]:
        """Delete everything, and return a sentence for each thing that is left.

        What outlives a stack is needed as long as the stack exists, and tenants' stacks cannot be deleted without the
        control plane. So each step begins only when nothing is left of the one before.
        """
        self._write_record(record)
        if any(stack.name == self._names.control_plane for stack in self._existing(self._is_own)):
            self._delete_tenants()
        for chosen in (self._is_tenants, self._is_events, self._is_own):
            if left := self._delete_stacks(chosen):
                return left
        # A deployment that was interrupted may have created more in the meantime.
        resources = self._write_record(record)
        return [kept for resource in resources if (kept := self._delete_resource(resource))]

    def _write_record(self, record: Path) -> list[Resource]:
        """Add the resources of the stacks to the record. A deleted stack still lists what it has left for 90 days."""
        before = read_record(record, self._names)
        found = dict(before)
        for stack in self._listed(lambda name: self._is_own(name) or self._is_events(name)):
            found |= dict.fromkeys(self._resources_of(stack))
        resources = list(found)
        document = {"name": self._names.control_plane, "resources": [asdict(each) for each in resources]}
        record.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        for resource in resources:
            if resource not in before:
                self._show(f"Recorded: {resource}")
        return resources

    def _resources_of(self, stack: StackNow) -> Iterator[Resource]:
        pages = self._stacks.get_paginator("list_stack_resources").paginate(StackName=stack.stack_id)
        for each in (summary for page in pages for summary in page["StackResourceSummaries"]):
            resource = Resource(each["ResourceType"], each.get("PhysicalResourceId", ""))
            if resource.kind in self._deleters and resource.name:
                yield resource

    def _delete_tenants(self) -> None:
        """Delete the tenants that a failed verification has left. A failure is shown; their stacks are deleted next."""
        listed = self._run_berth(["tenants", "--all", "--json"])
        if listed.returncode:
            self._show(f"The tenants could not be listed: {_last_line(listed)}")
            return
        for tenant in json.loads(listed.stdout)["tenants"]:
            tenant_id = tenant["tenantId"]
            deleted = self._run_berth(["delete", tenant_id, "--force", "--yes", "--wait", "--reason", "clean-up"])
            self._show(f"Tenant {tenant_id}: {_last_line(deleted) if deleted.returncode else 'deleted'}")

    def _delete_stacks(self, chosen: Callable[[str], bool]) -> list[str]:
        return [left for stack in list(self._existing(chosen)) if (left := self._delete_stack(stack))]

    def _delete_stack(self, stack: StackNow) -> str | None:
        try:
            self._stacks.update_termination_protection(EnableTerminationProtection=False, StackName=stack.stack_id)
            self._stacks.delete_stack(StackName=stack.stack_id)
            self._stacks.get_waiter("stack_delete_complete").wait(
                StackName=stack.stack_id, WaiterConfig={"Delay": _DELAY_SECONDS, "MaxAttempts": _MAX_ATTEMPTS}
            )
        except (WaiterError, ClientError) as error:
            return f"Stack {stack.name} could not be deleted: {error}. See its events in CloudFormation."
        self._show(f"Stack {stack.name}: deleted")
        return None

    def _delete_resource(self, resource: Resource) -> str | None:
        if resource.kind != "AWS::KMS::Key" and not self._is_named_after_control_plane(resource.name):
            return f"{resource} does not bear the name {self._names}, so it was not deleted."
        try:
            self._deleters[resource.kind](resource.name)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") not in _MISSING:
                return f"{resource} could not be deleted: {error}"
        except (WaiterError, Refused) as error:
            return f"{resource} could not be deleted: {error}"
        self._show(f"{resource}: gone")
        return None

    @property
    def _deleters(self) -> Mapping[str, Callable[[str], None]]:
        """The function that deletes a resource, for each type that holds data."""
        return {
            "AWS::DynamoDB::Table": self._delete_table,
            "AWS::KMS::Key": self._delete_key,
            "AWS::S3::Bucket": self._delete_bucket,
        }

    def _delete_table(self, name: str) -> None:
        self._tables.update_table(TableName=name, DeletionProtectionEnabled=False)
        self._tables.get_waiter("table_exists").wait(TableName=name)
        self._tables.delete_table(TableName=name)
        self._tables.get_waiter("table_not_exists").wait(TableName=name)

    def _delete_bucket(self, name: str) -> None:
        for page in self._buckets.get_paginator("list_object_versions").paginate(Bucket=name):
            for version in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
                self._buckets.delete_object(Bucket=name, Key=version["Key"], VersionId=version["VersionId"])
        self._buckets.delete_bucket(Bucket=name)

    def _delete_key(self, key_id: str) -> None:
        if self._keys.describe_key(KeyId=key_id)["KeyMetadata"]["KeyState"] == "PendingDeletion":
            return
        tags = {tag["TagKey"]: tag["TagValue"] for tag in self._keys.list_resource_tags(KeyId=key_id)["Tags"]}
        if tags.get(TAG) != self._names.control_plane:
            raise Refused(f"It has no tag {TAG}={self._names}, which the deployment should have set.")
        self._keys.schedule_key_deletion(KeyId=key_id, PendingWindowInDays=_KEY_DAYS)

    def _listed(self, chosen: Callable[[str], bool]) -> Iterator[StackNow]:
        """The stacks whose names are chosen, also those that were deleted in the last 90 days."""
        pages = self._stacks.get_paginator("list_stacks").paginate()
        for each in (summary for page in pages for summary in page["StackSummaries"]):
            if chosen(each["StackName"]):
                yield StackNow(each["StackName"], each["StackId"], each["StackStatus"])

    def _existing(self, chosen: Callable[[str], bool]) -> Iterator[StackNow]:
        return (stack for stack in self._listed(chosen) if stack.status != _GONE)

    def _is_own(self, stack_name: str) -> bool:
        return stack_name == self._names.control_plane

    def _is_events(self, stack_name: str) -> bool:
        return stack_name == self._names.events

    def _is_tenants(self, stack_name: str) -> bool:
        return stack_name.startswith(self._names.tenant_prefix)

    def _is_named_after_control_plane(self, name: str) -> bool:
        """True if the name begins with that of the control plane, and not with a longer number.

        CloudFormation names tables and buckets after their stack. Names of buckets are in lower case.
        """
        own = re.escape(self._names.control_plane)
        return bool(re.match(rf"{own}(?!\d)", name, re.IGNORECASE))


def read_record(record: Path, names: Names) -> dict[Resource, None]:
    """The resources in the record, in their order; none if there is no record yet."""
    if not record.exists():
        return {}
    document = json.loads(record.read_text(encoding="utf-8"))
    if document["name"] != names.control_plane:
        raise Refused(f"{record} is the record of {document['name']}, not of {names}. Nothing was done.")
    return dict.fromkeys(Resource(each["kind"], each["name"]) for each in document["resources"])


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1] if lines else f"berth ended with {done.returncode}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m stacks.clean_up", description="Delete a control plane of a test.")
    parser.add_argument("--name", required=True, help=f"the control plane's name, which begins with {PREFIX}")
    parser.add_argument("--record", required=True, type=Path, help="the file that lists what outlives the stacks")
    asked = parser.parse_args(arguments)
    session = Session(region_name=os.environ.get("AWS_REGION") or None)

    def run_berth(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "berth", "--stack", asked.name, "--region", session.region_name, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the berth of the environment

    def show(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    try:
        left = CleanUp(parse_name(asked.name), session, run_berth=run_berth, show=show).carry_out(asked.record)
    except (BerthError, BotoCoreError, ClientError) as error:
        show(f"{error}")
        return 2
    for sentence in left:
        show(f"LEFT: {sentence}")
    show(f"{len(left)} left." if left else f"Nothing of {asked.name} is left.")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
