"""Releases: tenant templates that are published under a version and never change.

1. :mod:`orchestrator.releases.records`    the record of a release
2. :mod:`orchestrator.releases.published`  publishing a release, its template's parameters, a stack's fingerprint
3. :mod:`orchestrator.releases.ports`      the interfaces that adapters implement for releases
"""
