"""Berth's own release: the stack of a tenant with a queue and nothing else (``stacks/tenant_stack.py``).

Its template is committed under ``stacks/releases/``, and published by every deployment.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from aws_cdk import App

from stacks.tenant_stack import TenantStack

# The CDK's command line switches these on through the environment. They must not change a release.
_WITHOUT_CDK_METADATA = {
    "aws:cdk:enable-path-metadata": False,
    "aws:cdk:enable-asset-metadata": False,
    "aws:cdk:version-reporting": False,
}


class OwnTenantStack(TenantStack):
    """The stack of tenants at a release that comes with Berth, whose versions are not those of operators."""

    _IS_OPERATORS: ClassVar[bool] = False


def tenant_template(version: str) -> dict[str, Any]:
    """The tenant stack as one self-contained template. The same version gives the same template on every machine."""
    with TemporaryDirectory() as assembly:
        app = App(outdir=assembly, analytics_reporting=False, post_cli_context=_WITHOUT_CDK_METADATA)
        stack = OwnTenantStack(app, "Tenant", version=version)
        template: dict[str, Any] = app.synth().get_stack_artifact(stack.artifact_id).template
        return template
