"""Berth: every tenant of a platform gets its own inbound queue, in its own stack.

This package is the product. Read it in this order:

1. :mod:`orchestrator.common.tenant_ids`         who a tenant is; :mod:`orchestrator.tenants.names` what its stack is called, and what
    else is named after the control plane
2. :mod:`orchestrator.tenants.records`         what is remembered: metadata, audit, history, lock, release
    (and who asks: :mod:`orchestrator.tenants.stack_resources`)

What platforms ask for:

3. :mod:`orchestrator.tenants.decisions`       getQueue as a pure function: what the records say -> what to answer
4. :mod:`orchestrator.tenants.get_queue`       the use case around it: read, decide, start
5. :mod:`orchestrator.tenants.credentials`     temporary credentials for one queue
6. :mod:`orchestrator.api.answers`         the answers as HTTP sees them

What operators ask for:

7. :mod:`orchestrator.tenants.admission`       which operation may run on which tenant, as a pure function
8. :mod:`orchestrator.tenants.lifecycle`       create, upgrade, retry and delete
9. :mod:`orchestrator.tenants.fleet`           one tenant in full, all tenants at a glance
10. :mod:`orchestrator.tenants.tenant_queue`   the same, asked for by a resource in another team's stack, once CloudFormation
    says that it is (:mod:`orchestrator.tenants.confirming`)

How many tenants there may be, and how fast a caller may add to them: :mod:`orchestrator.tenants.limits`.

What the machines do then:

11. :mod:`orchestrator.tenants.operations`     the life of one operation: begin, finish, record the failure (and when it is
    late: :mod:`orchestrator.tenants.deadlines`)
12. :mod:`orchestrator.tenants.outcomes`       what each step may come to
13. :mod:`orchestrator.tenants.stack_status`   every CloudFormation status, sorted
14. :mod:`orchestrator.tenants.tenant_stack`   bringing a stack about: review, start, await, inspect
15. :mod:`orchestrator.tenants.creating`, :mod:`orchestrator.tenants.updating`, :mod:`orchestrator.tenants.deleting`: what that means for each
16. :mod:`orchestrator.tenants.queue_metadata` what the stack itself says about its queue
17. :mod:`orchestrator.releases.published`       publishing the tenant template under its version

And the fleet as a whole: :mod:`orchestrator.rollouts` moves it to a release, :mod:`orchestrator.reconciling` gives
what died its end and finds what is not as it is recorded, :mod:`orchestrator.reconciling.health` says whether the control plane
itself is well.

:mod:`orchestrator.tenants.ports` names what these need from the outside; ``adapters/`` provides it on AWS. What comes in at
the edges is checked in :mod:`orchestrator.api.operator_requests`, :mod:`orchestrator.tenants.resource_requests` and
:mod:`orchestrator.tenants.schemas` (the machines' states), by :mod:`orchestrator.common.validation`. :mod:`orchestrator.common.errors` is
what can go wrong. The domain imports nothing but the standard library, and jsonschema in the validation.
"""
