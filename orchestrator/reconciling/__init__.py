"""Reconciling the records with AWS: ending operations whose executions died, and finding and repairing differences.

1. :mod:`orchestrator.reconciling.records`      reconciliations and their findings
2. :mod:`orchestrator.reconciling.settling`     ends an operation whose execution died
3. :mod:`orchestrator.reconciling.classifying`  compares one tenant's rows with its stack
4. :mod:`orchestrator.reconciling.repairing`    repairs a finding
5. :mod:`orchestrator.reconciling.reconciler`   runs a reconciliation of all tenants
   :mod:`orchestrator.reconciling.progress`     its results and its time
   :mod:`orchestrator.reconciling.surveying`    compares all tenants with all stacks
   :mod:`orchestrator.reconciling.checkpoints`  how far a survey has come
   :mod:`orchestrator.reconciling.checking`     checks one tenant of a survey
   :mod:`orchestrator.reconciling.comparing`    compares one tenant with its stack, for an operator
6. :mod:`orchestrator.reconciling.control`      requests and finds reconciliations
7. :mod:`orchestrator.reconciling.events`       the events of schedules and queues, validated
8. :mod:`orchestrator.reconciling.fleet_counts` counts tenants by version and state
9. :mod:`orchestrator.reconciling.health`       checks the health of the control plane

:mod:`orchestrator.reconciling.ports` has the interfaces that these modules need from the outside.
"""
