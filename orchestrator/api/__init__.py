"""HTTP: what is asked for, and what is answered. Nothing else knows of it.

:mod:`orchestrator.api.answers`                  getQueue's answers, and how problems are told
:mod:`orchestrator.api.operator_requests`        what operators ask for about tenants
:mod:`orchestrator.api.operator_answers`         what they are answered
:mod:`orchestrator.api.rollout_requests`         the same about rollouts
:mod:`orchestrator.api.rollout_answers`
:mod:`orchestrator.api.reconciliation_requests`  the same about reconciliations, adoptions and health
:mod:`orchestrator.api.reconciliation_answers`
"""
