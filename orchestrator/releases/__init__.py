"""Releases: tenant templates that are published under a version and never change.

1. :mod:`orchestrator.releases.records`            the record of a release, and the state of all releases
2. :mod:`orchestrator.releases.template_contract`  the names that the code expects in a tenant's template
3. :mod:`orchestrator.releases.published`          publishing a release, a template's parameters, a stack's fingerprint
4. :mod:`orchestrator.releases.comparing`          the differences between two templates, property by property
5. :mod:`orchestrator.releases.checking`           whether a template keeps the contract, and what to do if not
6. :mod:`orchestrator.releases.publishing`         publishing an operator's own template
7. :mod:`orchestrator.releases.states`             which release is current, and which were withdrawn
8. :mod:`orchestrator.releases.ports`              the interfaces that adapters implement for releases
"""
