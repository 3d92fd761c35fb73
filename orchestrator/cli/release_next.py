"""The next steps with a release."""

from __future__ import annotations

from orchestrator.cli.api import Document
from orchestrator.cli.next_step import NextStep


def release_steps(release: Document) -> list[NextStep]:
    """Everything that can be done with a release, and why what cannot be done now cannot."""
    version, withdrawn = release["version"], release["withdrawn"] is not None
    return [
        NextStep(
            "promote",
            "Make current",
            f"berth release promote {version}",
            "It is withdrawn: reinstate it first." if withdrawn else "It is current." if release["current"] else None,
        ),
        NextStep(
            "withdraw",
            "Withdraw",
            f"berth release withdraw {version}",
            "It is withdrawn already." if withdrawn else None,
        ),
        NextStep(
            "reinstate",
            "Reinstate",
            f"berth release reinstate {version}",
            None if withdrawn else "It is not withdrawn.",
        ),
    ]
