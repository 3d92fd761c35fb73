"""Stacks that are kept ready, so that a new tenant has its queue at its first call.

A stack that is kept ready is created as a tenant of its own, by the same machine and at the same pace as all others,
under an id that nobody can ask for. A new tenant takes it in one transaction, which moves the stack and its queue from
the one record to the other. The stack learns its tenant afterwards, by an ordinary update.

1. :mod:`orchestrator.pool.records`      the members of the pool
2. :mod:`orchestrator.pool.seen`         the stacks that a process has seen to be ready
3. :mod:`orchestrator.pool.taking`       a new tenant takes a stack; called by getQueue
4. :mod:`orchestrator.pool.maintaining`  refilling, replacing, teaching; called by the scheduled reconciliation

:mod:`orchestrator.pool.ports` has the interface that adapters implement.
"""
