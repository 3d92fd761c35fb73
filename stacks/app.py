"""``python -m stacks.app``: ``cdk`` runs this to synthesise the control plane."""

from __future__ import annotations

import sys

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from orchestrator.common.errors import BerthError
from stacks.control_plane import ControlPlaneStack
from stacks.project import read_version
from stacks.settings import Settings


def build(app: App) -> ControlPlaneStack:
    """Add the control plane. Synthesis fails on security findings that are not acknowledged with a reason."""
    stack = ControlPlaneStack(app, version=read_version(), settings=Settings.from_context(app.node))
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return stack


def main() -> None:
    app = App(analytics_reporting=False)
    try:
        build(app)
    except BerthError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
