"""What every capability needs.

1. :mod:`orchestrator.common.tenant_ids`  who a tenant is
2. :mod:`orchestrator.common.versions`    how versions are written, and which is older
3. :mod:`orchestrator.common.times`       the clock, how times are written, ids that sort by time
4. :mod:`orchestrator.common.callers`     who is asking, as API Gateway tells it and proves it
5. :mod:`orchestrator.common.stack_arns`  the ids of CloudFormation's stacks
6. :mod:`orchestrator.common.input_limits`  what no input may hold
7. :mod:`orchestrator.common.validation`  how input is checked against JSON schemas
8. :mod:`orchestrator.common.errors`      everything that can go wrong, in one tree
"""
