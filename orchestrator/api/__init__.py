"""HTTP: what is asked for, and what is answered. Nothing else knows of it.

Declared once, and read by the function, the gateway, the policies, the client and the document:

1. :mod:`orchestrator.api.route`                  what a declaration of a route says
2. :mod:`orchestrator.api.problems`               kinds of problems
3. :mod:`orchestrator.api.fields`                 the values that requests and answers are made of
4. :mod:`orchestrator.api.queue_routes`           what platforms, senders and receivers ask for
5. :mod:`orchestrator.api.tenant_routes`          what operators ask for about tenants and releases
6. :mod:`orchestrator.api.rollout_routes`         the same about rollouts
7. :mod:`orchestrator.api.reconciliation_routes`  the same about reconciliations, adoptions and health
8. :mod:`orchestrator.api.routes`                 all of them

How a request is read, and what is answered:

- :mod:`orchestrator.api.reading`
- :mod:`orchestrator.api.requesting`               the other way round, for clients
- :mod:`orchestrator.api.answers`                  getQueue's answers, and how problems are told
- :mod:`orchestrator.api.operator_answers`
- :mod:`orchestrator.api.rollout_answers`
- :mod:`orchestrator.api.reconciliation_answers`

:mod:`orchestrator.api.openapi` writes docs/openapi.json.
"""
