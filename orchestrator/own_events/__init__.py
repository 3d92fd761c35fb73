"""Berth's own events: changes of tenants, rollouts, connections and deliveries that other systems may react to.

1. :mod:`orchestrator.own_events.kinds`       the kinds of events, and the fields of each kind as JSON schemas
2. :mod:`orchestrator.own_events.changes`     turning a recorded change into an event

:mod:`orchestrator.own_events.schemas` prints all schemas, and
:mod:`orchestrator.own_events.ports` has the interfaces that adapters implement.
"""
