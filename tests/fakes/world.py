"""A control plane in memory: the use cases over fakes, as functions have them over AWS."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.composition import UseCases
from orchestrator.tenants.records import Metadata
from tests.fakes.examples import ACME, NEXT_VERSION, VERSION, a_release
from tests.fakes.ports import FakePorts


class World(FakePorts, UseCases):
    """The fakes and the use cases in one, so that a test says ``world.clock`` and ``world.lifecycle``.

    Replace a fake at any time, by keyword or by assignment: use cases are built when they are asked for.
    """

    def __init__(
        self, *, version: str = VERSION, published: Iterable[str] = (VERSION, NEXT_VERSION), **fakes: Any
    ) -> None:
        """``version`` is the control plane's. ``published`` are the releases that there are."""
        FakePorts.__init__(self, **fakes)
        UseCases.__init__(self, self)
        self.settings.version = version
        for each in published:
            self.table.record_release(a_release(each))

    def metadata_of(self, tenant: TenantId = ACME) -> Metadata:
        found = self.table.metadata(tenant)
        assert found is not None
        return found
