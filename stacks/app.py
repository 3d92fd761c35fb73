"""``python -m stacks.app``: ``cdk`` runs this to synthesise the control plane and the event plane."""

from __future__ import annotations

import sys

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from orchestrator.common.errors import BerthError
from orchestrator.common.own_versions import berth_version, template_version
from stacks.control_plane import ControlPlaneStack
from stacks.events.stack import EventsStack
from stacks.settings import Settings


def build(app: App) -> None:
    """Add the stacks. Synthesis fails on security findings that are not acknowledged with a reason."""
    version, settings = berth_version(), Settings.from_context(app.node)
    control_plane = ControlPlaneStack(app, version=version, template_version=template_version(), settings=settings)
    if settings.events:
        EventsStack(app, control_plane=control_plane, version=version, settings=settings)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))


def main() -> None:
    app = App(analytics_reporting=False)
    try:
        build(app)
    except BerthError as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
