"""Advice about the version of this command line."""

from __future__ import annotations

from orchestrator.common.own_versions import berth_version


def advice_about(deployed: str | None) -> str | None:
    """The advice if the version that is deployed is not that of this command line."""
    ours = berth_version()
    if deployed == ours:
        return None
    return f"This command line has version {ours}: install the other version, or deploy this one."
