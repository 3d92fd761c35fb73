"""The life of one tenant.

1. :mod:`orchestrator.tenants.names`            what its stack is called, and what else is named after the control plane
2. :mod:`orchestrator.tenants.records`          what is remembered: metadata, audit, history, lock
3. :mod:`orchestrator.tenants.state`            a tenant in one word, derived from what is remembered
4. :mod:`orchestrator.tenants.stack_resources`  resources of other teams' stacks: one of them may own a tenant

What platforms ask for:

5. :mod:`orchestrator.tenants.decisions`        getQueue as a pure function: what the records say -> what to answer
6. :mod:`orchestrator.tenants.get_queue`        the use case around it: read, decide, start
7. :mod:`orchestrator.tenants.credentials`      temporary credentials for one queue
8. :mod:`orchestrator.tenants.limits`           how many tenants there may be, and how fast a caller may add to them

What operators ask for:

9. :mod:`orchestrator.tenants.admission`        which operation may run on which tenant, as a pure function
10. :mod:`orchestrator.tenants.lifecycle`        create, upgrade, retry and delete
11. :mod:`orchestrator.tenants.fleet`           one tenant in full, all tenants at a glance

What other teams' stacks ask for:

12. :mod:`orchestrator.tenants.tenant_queue`       the same, asked for by a resource
13. :mod:`orchestrator.tenants.confirming`         whether CloudFormation says that it was that resource
14. :mod:`orchestrator.tenants.resource_requests`  what resources send, checked

What the machines do then:

15. :mod:`orchestrator.tenants.execution_input`  what an execution is started with
16. :mod:`orchestrator.tenants.schemas`          what the machines' states send, checked
17. :mod:`orchestrator.tenants.operations`       the life of one operation: begin, finish, record the failure
18. :mod:`orchestrator.tenants.deadlines`        when an operation is late
19. :mod:`orchestrator.tenants.outcomes`         what each step may come to
20. :mod:`orchestrator.tenants.stack_status`     every CloudFormation status, sorted
21. :mod:`orchestrator.tenants.own_stack`        which stack is the tenant's
22. :mod:`orchestrator.tenants.tenant_stack`     bringing a stack about: review, start, await, inspect
23. :mod:`orchestrator.tenants.creating`, :mod:`orchestrator.tenants.updating`, :mod:`orchestrator.tenants.deleting`:
    what that means for each operation
24. :mod:`orchestrator.tenants.queue_metadata`   what the stack itself says about its queue
25. :mod:`orchestrator.tenants.changes`          what is written into history beside operations

How a tenant's rows change:

26. :mod:`orchestrator.tenants.writes`       a transition as data: writes to rows, each with its condition
27. :mod:`orchestrator.tenants.transitions`  the rules: what each step writes, and on which conditions
28. :mod:`orchestrator.tenants.ledger`       read, compute the transition, have it applied

:mod:`orchestrator.tenants.ports` names what all of these need from the outside.
"""
