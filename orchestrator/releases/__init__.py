"""What tenants are made from: templates that are published under a version and never change.

1. :mod:`orchestrator.releases.records`    what is remembered of a release
2. :mod:`orchestrator.releases.published`  publishing one, what its template is given, what a stack was made from
3. :mod:`orchestrator.releases.ports`      what these need from the outside
"""
