"""Berth: every tenant of a platform gets its own inbound queue, in its own stack.

This package is the product. A folder is a capability; read them in this order:

:mod:`orchestrator.common`       used by all of them: tenant ids, versions, times, errors, validation of input
:mod:`orchestrator.releases`     the published templates of tenants' stacks
:mod:`orchestrator.tenants`      the life of one tenant
:mod:`orchestrator.rollouts`     moving the fleet to a release
:mod:`orchestrator.pool`         stacks that are kept ready for new tenants
:mod:`orchestrator.reconciling`  closing operations that died, finding and repairing differences, health
:mod:`orchestrator.events`       the event plane: tenants' events, webhooks and forms
:mod:`orchestrator.own_events`   Berth's own events, for other systems that react to changes
:mod:`orchestrator.api`          HTTP: the routes, their requests and their answers

These packages are the domain. They import the standard library, jsonschema in one module and msgspec in the API. They
never import AWS's SDK.

:mod:`orchestrator.adapters`           the only code that talks to AWS
:mod:`orchestrator.ports`              everything that use cases of the control plane need from outside
:mod:`orchestrator.composition`        builds every use case of the control plane from ports;
:mod:`orchestrator.tenant_composition` has those of single tenants
:mod:`orchestrator.event_ports`        everything that use cases of the event plane need from outside
:mod:`orchestrator.event_composition`  builds every use case of the event plane from these ports
:mod:`orchestrator.client`             the Python client of the API, for platforms, tenants and the command line
:mod:`orchestrator.cli`                ``berth``, the command line
:mod:`orchestrator.console`            ``berth console``, pages for operators on their own machine
:mod:`orchestrator.local`              the emulator, on which everything runs without an AWS account
"""
