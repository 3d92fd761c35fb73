"""An operator's own template, as docs/templates.md describes it, and the policy that it needs."""

from __future__ import annotations

from pathlib import Path

from orchestrator.adapters.sessions import session_without_profile
from orchestrator.local.emulator import Emulator

POLICY_FILE = Path(__file__).resolve().parents[2] / "docs" / "templates" / "policy.json"


def make_policy(emulator: Emulator) -> str:
    """The ARN of the managed policy that lets tenants' stacks have buckets and tables."""
    iam = session_without_profile(emulator.session_settings()).client("iam", endpoint_url=emulator.endpoint)
    created = iam.create_policy(PolicyName="berth-tenants", PolicyDocument=POLICY_FILE.read_text(encoding="utf-8"))
    return str(created["Policy"]["Arn"])
