"""Berth: every tenant of a platform gets its own inbound queue, in its own stack.

This package is the product. A folder is a capability; read them in this order:

:mod:`orchestrator.common`       what all of them need: tenant ids, versions, times, errors, how input is checked
:mod:`orchestrator.releases`     what tenants are made from
:mod:`orchestrator.tenants`      the life of one tenant
:mod:`orchestrator.rollouts`     moving the fleet to a release
:mod:`orchestrator.reconciling`  giving what died its end, finding what is not as it is recorded, and health
:mod:`orchestrator.api`          HTTP: what is asked for, and what is answered

These are the domain. It imports the standard library, jsonschema in one module, msgspec in the API, and no AWS.

:mod:`orchestrator.adapters`     the only code that talks to AWS
:mod:`orchestrator.composition`  builds every use case from ports
:mod:`orchestrator.client`       the Python client of the API, for platforms and the command line
:mod:`orchestrator.cli`          ``berth``, the command line
:mod:`orchestrator.local`        the emulator, on which everything runs without an account
"""
