"""A tenant's queue, for CDK apps of other teams: ``from berth.cdk import TenantQueue``.

The CDK library is an extra: ``pip install 'berth[cdk]'``.
"""

from __future__ import annotations

from orchestrator.tenants.resource_requests import OnDelete
from stacks.tenant_queue import TenantQueue

__all__ = ["OnDelete", "TenantQueue"]
