"""Publishes a release onto the local control plane, as a deployment of that version would."""

import hashlib
import json
from typing import Any

from orchestrator.adapters.aws import SystemClock
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.adapters.s3 import S3Templates
from orchestrator.adapters.sessions import session_without_profile
from orchestrator.local.emulator import Emulator
from orchestrator.local.home import CHECKOUT
from orchestrator.releases.published import canonical, publish_release
from orchestrator.releases.records import Release

Template = dict[str, Any]


def released_template(version: str) -> Template:
    """The tenant template of a released version."""
    template: Template = json.loads((CHECKOUT / "stacks" / "releases" / f"{version}.json").read_text())
    return template


def bumped(template: Template, version: str) -> Template:
    """The same template with another version wherever the template names its own."""
    old = template["Outputs"]["Version"]["Value"]
    text = json.dumps(template).replace(f'"{old}"', f'"{version}"')
    changed: Template = json.loads(text)
    return changed


def publish(emulator: Emulator, outputs: dict[str, str], version: str, template: Template) -> Release:
    session = session_without_profile(emulator.session_settings())
    s3 = session.client("s3", endpoint_url=emulator.endpoint)
    bucket, key = outputs["ReleaseBucketName"], f"uploads/{version}.json"
    content = canonical(template)
    s3.put_object(Bucket=bucket, Key=key, Body=content)
    return publish_release(
        version,
        digest=hashlib.sha256(content).hexdigest(),
        source_key=key,
        releases=DynamoTable(session.client("dynamodb", endpoint_url=emulator.endpoint), outputs["TableName"]),
        templates=S3Templates(s3, bucket, source=bucket),
        clock=SystemClock(),
    )
