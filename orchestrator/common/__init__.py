"""The modules that every capability uses.

1. :mod:`orchestrator.common.tenant_ids`  tenant ids and their validation
2. :mod:`orchestrator.common.versions`    the format and the order of versions
3. :mod:`orchestrator.common.own_versions`  the versions of this installation: Berth's, and the tenants' template's
4. :mod:`orchestrator.common.tiers`       the names of tiers
5. :mod:`orchestrator.common.times`       the clock, the format of timestamps, ids that sort by time
6. :mod:`orchestrator.common.callers`     the caller of a request, and the proof that API Gateway sent the request
7. :mod:`orchestrator.common.stack_arns`  the ARNs of CloudFormation stacks
8. :mod:`orchestrator.common.input_limits`  text and nesting that no input may contain
9. :mod:`orchestrator.common.validation`  validation of input against JSON schemas
10. :mod:`orchestrator.common.writes`      changes of rows, as data
11. :mod:`orchestrator.common.errors`      all exceptions, in one tree
"""
