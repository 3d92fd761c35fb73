"""The life cycle of one tenant.

1. :mod:`orchestrator.tenants.names`            the names of the control plane, its tenants' stacks and their queues
2. :mod:`orchestrator.tenants.records`          the records of a tenant: metadata, audits, lock;
   :mod:`orchestrator.tenants.history`          the entries of its history
3. :mod:`orchestrator.tenants.state`            a tenant's state, derived from its records
4. :mod:`orchestrator.tenants.stack_resources`  resources in other teams' stacks, which may own a tenant

Requests of platforms:

5. :mod:`orchestrator.tenants.decisions`        getQueue's decision, as a pure function of the records;
   :mod:`orchestrator.tenants.ready`            has that for a tenant in service
6. :mod:`orchestrator.tenants.get_queue`        getQueue's use case: return the queue of a tenant in service;
   :mod:`orchestrator.tenants.provisioning`     has the other tenants: read the records, decide, start a create
7. :mod:`orchestrator.tenants.credentials`      temporary credentials for one queue
8. :mod:`orchestrator.tenants.limits`           the maximum number of tenants, and of creates per caller and minute

Requests of operators:

9. :mod:`orchestrator.tenants.admission`        which operation may run on which tenant, as a pure function
10. :mod:`orchestrator.tenants.lifecycle`       create, upgrade, retry, delete, label and pin a tenant;
    :mod:`orchestrator.tenants.attempts`        has the attempts: which is the next, and which can be retried;
    :mod:`orchestrator.tenants.order_results`   has what becomes of such an order;
    :mod:`orchestrator.tenants.order_messages`  has its longer messages
11. :mod:`orchestrator.tenants.fleet`           the details of one tenant, and the list of all tenants;
    :mod:`orchestrator.tenants.listings`        has tenants as the list has them;
    :mod:`orchestrator.tenants.selections`      finds ids and labels that no tenant has;
    :mod:`orchestrator.tenants.recent`          has the newest operations of all tenants

Requests of other teams' stacks:

12. :mod:`orchestrator.tenants.tenant_queue`       the use case of Custom::TenantQueue
13. :mod:`orchestrator.tenants.confirming`         checks with CloudFormation that a custom resource's event is genuine
14. :mod:`orchestrator.tenants.resource_requests`  the events of custom resources, validated

The steps of the state machines:

15. :mod:`orchestrator.tenants.execution_input`  the input of an execution
16. :mod:`orchestrator.tenants.schemas`          the payloads of the machines' states, validated
17. :mod:`orchestrator.tenants.operations`       an operation's first and last step: begin, finish, record a failure
    :mod:`orchestrator.tenants.turns`            waiting for a create's turn, if many are requested at once
18. :mod:`orchestrator.tenants.deadlines`        how long an operation may take
19. :mod:`orchestrator.tenants.outcomes`         the possible outcomes of each step
20. :mod:`orchestrator.tenants.stack_status`     what each CloudFormation stack status means for a tenant
21. :mod:`orchestrator.tenants.own_stack`        which stack belongs to the tenant
22. :mod:`orchestrator.tenants.tenant_stack`     the steps on a stack: review, start, inspect
23. :mod:`orchestrator.tenants.creating`, :mod:`orchestrator.tenants.updating`, :mod:`orchestrator.tenants.deleting`:
    these steps for each operation
    :mod:`orchestrator.tenants.messages`         has the number of messages in a queue
24. :mod:`orchestrator.tenants.awaiting`         waiting for a stack, with a task token
25. :mod:`orchestrator.tenants.reviews`          reviews of updates that are kept for other tenants
    :mod:`orchestrator.tenants.release_changes`  what changes between two releases, and whether that was reviewed
26. :mod:`orchestrator.tenants.queue_metadata`   the queue that the tenant's stack itself reports
27. :mod:`orchestrator.tenants.changes`          entries of the history for changes outside operations

The writes to a tenant's rows:

28. :mod:`orchestrator.tenants.writes`                 a transition as data: writes to rows, with conditions
29. :mod:`orchestrator.tenants.operation_rows`         the rows that an operation writes
30. :mod:`orchestrator.tenants.operation_transitions`  the rules for an operation's writes
31. :mod:`orchestrator.tenants.metadata_transitions`   the rules for changes of the metadata outside operations
32. :mod:`orchestrator.tenants.ledger`                 reads the records, computes the transition, applies it

:mod:`orchestrator.tenants.ports` has the interfaces that these modules need from the outside,
:mod:`orchestrator.tenants.stack_ports` those for CloudFormation.
"""
