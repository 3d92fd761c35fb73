"""Berth: every tenant of a platform gets its own inbound queue, in its own stack.

This package is the product. Read it in this order:

1. :mod:`orchestrator.tenants`         who a tenant is, and the names derived from its id
2. :mod:`orchestrator.records`         what is remembered: metadata, audit, history, lock, release
3. :mod:`orchestrator.decisions`       getQueue as a pure function: what the records say -> what to answer
4. :mod:`orchestrator.get_queue`       the use case around it: read, decide, start
5. :mod:`orchestrator.answers`         the answers as HTTP sees them
6. :mod:`orchestrator.operations`      the life of one operation: begin, finish, record the failure
7. :mod:`orchestrator.stack_status`    every CloudFormation status, sorted
8. :mod:`orchestrator.tenant_stack`    bringing the tenant's stack about: start, await, inspect
9. :mod:`orchestrator.queue_metadata`  what the stack itself says about its queue
10. :mod:`orchestrator.releases`       publishing the tenant template under its version
11. :mod:`orchestrator.fleet`          all tenants at a glance

:mod:`orchestrator.ports` names what these need from the outside; ``adapters/`` provides it on AWS.
:mod:`orchestrator.schemas` checks what comes in at the edges, and :mod:`orchestrator.errors` is what can go wrong.
The domain imports nothing but the standard library, and jsonschema in the schemas.
"""
