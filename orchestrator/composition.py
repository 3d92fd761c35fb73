"""The composition root: builds every use case from ports. Functions and tests share it.

To put another thing behind a use case, replace a port. There is no other way, and none is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.tenant_composition import TenantUseCases

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.pool.maintaining import Maintaining
    from orchestrator.reconciling.comparing import Comparing
    from orchestrator.reconciling.control import Reconciliations
    from orchestrator.reconciling.fleet_counts import FleetCounter
    from orchestrator.reconciling.health import Health
    from orchestrator.reconciling.reconciler import Reconciler
    from orchestrator.reconciling.repairing import Repairing
    from orchestrator.reconciling.settling import Settling
    from orchestrator.releases.publishing import Publishing
    from orchestrator.releases.records import Release
    from orchestrator.rollouts.adjusting import Adjusting
    from orchestrator.rollouts.advancing import Advancing
    from orchestrator.rollouts.control import Rollouts
    from orchestrator.rollouts.gate import Gate
    from orchestrator.rollouts.releasing import Releasing
    from orchestrator.rollouts.reviewing import Reviewing as ReviewingInRollouts
    from orchestrator.tenants.confirming import Deployment
    from orchestrator.tenants.release_changes import ComparingReleases


class UseCases(TenantUseCases):
    """All use cases: those of single tenants, and those of the whole fleet."""

    # Stacks that are kept ready

    @property
    def maintaining(self) -> Maintaining:
        from orchestrator.pool.maintaining import Maintaining

        ports = self.ports
        return Maintaining(
            rows=ports.warm_stacks,
            tenants=ports.tenant_rows,
            fleet=ports.fleet,
            releases=ports.releases,
            lifecycle=self.lifecycle_with(self.limits_of_orders, parameters=ports.parameters, of_warm_stacks=True),
            parameters=ports.parameters,
            choose=self.choose_release,
            new_name=ports.new_name,
            clock=ports.clock,
            sizes=ports.settings.warm_pool,
        )

    # Deployments of the control plane

    @property
    def deployment(self) -> Deployment:
        from orchestrator.tenants.confirming import Deployment

        return Deployment(self.ports.settings.stack_id, self.ports.stack_resources, self.ports.pause)

    def publish_release(
        self, version: str, *, digest: str, notes: str = "", source_key: str, again: bool = False
    ) -> Release:
        from orchestrator.releases.published import publish_release

        ports = self.ports
        return publish_release(
            version,
            digest=digest,
            notes=notes,
            source_key=source_key,
            releases=ports.releases,
            templates=ports.templates,
            clock=ports.clock,
            again=again,
        )

    @property
    def publishing(self) -> Publishing:
        """Publishing operators' own templates."""
        from orchestrator.releases.publishing import Publishing
        from orchestrator.releases.template_names import ReservedNames

        ports, names = self.ports, self.ports.settings.names
        return Publishing(
            releases=ports.releases,
            store=ports.templates,
            templates=ports.published_templates,
            choose=self.choose_release,
            permissions=ports.stack_policies.permissions,
            clock=ports.clock,
            reserved=ReservedNames(names.control_plane, names.legacy_prefixes),
        )

    def keep_current_release(self, request: str) -> None:
        """Deployments cease to promote releases, so the release that is current now is promoted.

        During a deployment, the stack has the outputs of the previous one.
        """
        ports, settings = self.ports, self.ports.settings
        before = ports.stack_resources.stack_output(settings.stack_id, "TemplateVersion")
        self.promoter.keep_current(deployed_before=before, request=request, by="deployment", at=ports.clock.now())

    @property
    def comparing_releases(self) -> ComparingReleases:
        from orchestrator.tenants.release_changes import ComparingReleases

        ports = self.ports
        return ComparingReleases(ports.releases, ports.published_templates, ports.reviews, ports.parameters)

    # Reconciling

    @property
    def settling(self) -> Settling:
        from orchestrator.reconciling.settling import Settling

        ports = self.ports
        return Settling(
            reader=ports.tenants,
            ledger=ports.ledger,
            releases=ports.releases,
            stacks=ports.stacks,
            queues=ports.queues,
            executions=ports.executions,
            parameters=ports.parameters,
            turns=self.turns,
            clock=ports.clock,
        )

    @property
    def repairing(self) -> Repairing:
        from orchestrator.reconciling.repairing import Repairing
        from orchestrator.tenants.limits import Unlimited

        ports = self.ports
        return Repairing(
            lifecycle=self.lifecycle_with(Unlimited(), parameters=ports.parameters, of_warm_stacks=True),
            releases=ports.releases,
            corrections=ports.ledger,
            queue_metadata=ports.ledger,
            clock=ports.clock,
        )

    def reconciler(self, *, has_time: Callable[[], bool] = lambda: True) -> Reconciler:
        from orchestrator.reconciling.reconciler import Reconciler

        ports = self.ports
        return Reconciler(
            tenants=ports.tenants,
            fleet=ports.fleet,
            releases=ports.releases,
            stacks=ports.stacks,
            survey=ports.survey,
            queues=ports.queues,
            settling=self.settling,
            repairing=self.repairing,
            ledger=ports.reconciliation_table,
            counter=self.fleet_counter,
            rollouts=ports.rollout_table,
            rollout_executions=ports.rollout_executions,
            pool=self.maintaining,
            clock=ports.clock,
            has_time=has_time,
            pause=ports.pause,
        )

    @property
    def comparing(self) -> Comparing:
        from orchestrator.reconciling.comparing import Comparing

        ports = self.ports
        return Comparing(ports.tenants, ports.observed_stacks, ports.queues, ports.releases, ports.clock)

    @property
    def reconciliations(self) -> Reconciliations:
        from orchestrator.reconciling.control import Reconciliations

        ports = self.ports
        return Reconciliations(
            ledger=ports.reconciliation_table, starter=ports.reconciliation_starter, clock=ports.clock
        )

    @property
    def fleet_counter(self) -> FleetCounter:
        from orchestrator.reconciling.fleet_counts import FleetCounter

        ports = self.ports
        return FleetCounter(ports.fleet, ports.reconciliation_table, ports.clock, ports.tenant_counts)

    @property
    def health(self) -> Health:
        from orchestrator.reconciling.health import Health

        ports = self.ports
        return Health(
            fleet=ports.fleet,
            counter=self.fleet_counter,
            reconciliations=ports.reconciliation_table,
            queues=ports.queues,
            stack_limit=ports.stack_limit,
            concurrency=ports.concurrency,
            max_tenants=ports.settings.max_tenants,
            dead_letter_queues=ports.settings.dead_letter_queues,
            rollouts=ports.rollout_table,
            rollout_executions=ports.rollout_executions,
            warm_stacks=ports.warm_stacks,
            warm_pool=ports.settings.warm_pool,
            clock=ports.clock,
        )

    # Rollouts

    @property
    def rollouts(self) -> Rollouts:
        from orchestrator.rollouts.control import Rollouts

        ports = self.ports
        return Rollouts(
            ledger=ports.rollout_table,
            tenants=ports.tenants,
            fleet=ports.fleet,
            releases=ports.releases,
            manifests=ports.manifests,
            alarms=ports.alarms,
            executions=ports.rollout_executions,
            clock=ports.clock,
            chooser=self.release_chooser,
            updates=ports.executions,
        )

    @property
    def releasing(self) -> Releasing:
        from orchestrator.rollouts.releasing import Releasing

        ports = self.ports
        return Releasing(
            chooser=self.release_chooser,
            releases=ports.releases,
            fleet=ports.fleet,
            rollouts=ports.rollout_table,
            executions=ports.rollout_executions,
            clock=ports.clock,
        )

    @property
    def rollout_adjusting(self) -> Adjusting:
        from orchestrator.rollouts.adjusting import Adjusting

        return Adjusting(self.ports.rollout_table, self.ports.rollout_executions, self.ports.clock)

    @property
    def advancing(self) -> Advancing:
        from orchestrator.rollouts.advancing import Advancing

        ports = self.ports
        return Advancing(
            ledger=ports.rollout_table,
            tenants=ports.tenants,
            manifests=ports.manifests,
            alarms=ports.alarms,
            throttling=ports.throttling,
            executions=ports.rollout_executions,
            clock=ports.clock,
            promoter=self.promoter,
        )

    @property
    def gate(self) -> Gate:
        from orchestrator.rollouts.gate import Gate

        ports = self.ports
        return Gate(
            ledger=ports.rollout_table,
            tenants=ports.tenants,
            throttling=ports.throttling,
            clock=ports.clock,
            release_states=ports.release_states,
        )

    @property
    def reviewing(self) -> ReviewingInRollouts:
        from orchestrator.rollouts.reviewing import Reviewing

        ports = self.ports
        return Reviewing(
            gate=self.gate,
            ledger=ports.rollout_table,
            tenants=ports.tenants,
            releases=ports.releases,
            stacks=ports.writable_stacks,
            queues=ports.queues,
            parameters=ports.parameters,
            clock=ports.clock,
        )
