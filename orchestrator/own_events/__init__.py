"""Berth's own events: changes of tenants, rollouts, connections and deliveries that other systems may react to.

1. :mod:`orchestrator.own_events.kinds`       the kinds of events, and the fields of each kind as JSON schemas
2. :mod:`orchestrator.own_events.changes`     turning a recorded change into an event
3. :mod:`orchestrator.own_events.publishing`  putting events on the bus, and handing them to the operators' own tenant
4. :mod:`orchestrator.own_events.operators`   the operators' own tenant, which receives the events like any others

:mod:`orchestrator.own_events.schemas` writes the document with all schemas, and
:mod:`orchestrator.own_events.ports` has the interfaces that adapters implement.
"""
