"""Releases: tenant templates that are published under a version and never change.

1. :mod:`orchestrator.releases.records`            the record of a release, and the state of all releases
2. :mod:`orchestrator.releases.template_contract`  the names that the code expects in a tenant's template
3. :mod:`orchestrator.releases.published`          publishing a release, a template's parameters, a stack's fingerprint
4. :mod:`orchestrator.releases.comparing`          the differences between two templates, property by property
5. :mod:`orchestrator.releases.findings`           the rules of the contract, and what is found by them
6. :mod:`orchestrator.releases.template_values`    reading values of a template that somebody else wrote
7. :mod:`orchestrator.releases.template_texts`     the texts that a template's functions can make
8. :mod:`orchestrator.releases.template_queues`    which queues a template has and keeps
9. :mod:`orchestrator.releases.template_policies`  whom a template's policies may admit
10. :mod:`orchestrator.releases.template_names`    which names a template may give and use
11. :mod:`orchestrator.releases.template_references`  which values a template may refer to
12. :mod:`orchestrator.releases.service_permissions`  what the service role of tenants' stacks may create
13. :mod:`orchestrator.releases.checking`          whether a template keeps the contract, and what to do if not
14. :mod:`orchestrator.releases.publishing`        publishing an operator's own template
15. :mod:`orchestrator.releases.states`            which release is current, and which were withdrawn
16. :mod:`orchestrator.releases.ports`             the interfaces that adapters implement for releases
"""
