"""For CDK apps: ``from berth.cdk import TenantQueue`` for other teams, and ``TenantStack`` for who runs Berth.

``TenantQueue`` is a tenant's queue in a stack of another team. ``TenantStack`` is the stack of every tenant, which a
platform subclasses to give its tenants more than a queue.

The CDK library is an extra: ``pip install 'berth[cdk]'``.
"""

from __future__ import annotations

from orchestrator.tenants.resource_requests import OnDelete
from stacks.tenant_queue import TenantQueue
from stacks.tenant_stack import TenantStack

__all__ = ["OnDelete", "TenantQueue", "TenantStack"]
