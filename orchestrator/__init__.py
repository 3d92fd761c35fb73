"""Berth: every tenant of a platform gets its own inbound queue, in its own stack.

This package is the product. Read it in this order:

1. :mod:`orchestrator.tenants`         who a tenant is; :mod:`orchestrator.names` what its stack is called, and what
    else is named after the control plane
2. :mod:`orchestrator.records`         what is remembered: metadata, audit, history, lock, release
    (and who asks: :mod:`orchestrator.stack_resources`)

What platforms ask for:

3. :mod:`orchestrator.decisions`       getQueue as a pure function: what the records say -> what to answer
4. :mod:`orchestrator.get_queue`       the use case around it: read, decide, start
5. :mod:`orchestrator.credentials`     temporary credentials for one queue
6. :mod:`orchestrator.answers`         the answers as HTTP sees them

What operators ask for:

7. :mod:`orchestrator.admission`       which operation may run on which tenant, as a pure function
8. :mod:`orchestrator.lifecycle`       create, upgrade, retry and delete
9. :mod:`orchestrator.fleet`           one tenant in full, all tenants at a glance
10. :mod:`orchestrator.tenant_queue`   the same, asked for by a resource in another team's stack, once CloudFormation
    says that it is (:mod:`orchestrator.confirming`)

How many tenants there may be, and how fast a caller may add to them: :mod:`orchestrator.limits`.

What the machines do then:

11. :mod:`orchestrator.operations`     the life of one operation: begin, finish, record the failure (and when it is
    late: :mod:`orchestrator.deadlines`)
12. :mod:`orchestrator.outcomes`       what each step may come to
13. :mod:`orchestrator.stack_status`   every CloudFormation status, sorted
14. :mod:`orchestrator.tenant_stack`   bringing a stack about: review, start, await, inspect
15. :mod:`orchestrator.creating`, :mod:`orchestrator.updating`, :mod:`orchestrator.deleting`: what that means for each
16. :mod:`orchestrator.queue_metadata` what the stack itself says about its queue
17. :mod:`orchestrator.releases`       publishing the tenant template under its version

And the fleet as a whole: :mod:`orchestrator.rollouts` moves it to a release, :mod:`orchestrator.reconciling` gives
what died its end and finds what is not as it is recorded, :mod:`orchestrator.health` says whether the control plane
itself is well.

:mod:`orchestrator.ports` names what these need from the outside; ``adapters/`` provides it on AWS. What comes in at
the edges is checked in :mod:`orchestrator.operator_requests`, :mod:`orchestrator.resource_requests` and
:mod:`orchestrator.schemas` (the machines' states), by :mod:`orchestrator.validation`. :mod:`orchestrator.errors` is
what can go wrong. The domain imports nothing but the standard library, and jsonschema in the validation.
"""
