"""What is recorded, and what is true: ending what died, and finding where the two differ.

1. :mod:`orchestrator.reconciling.records`     what is asked for, and what is found
2. :mod:`orchestrator.reconciling.settling`    an operation whose execution died
3. :mod:`orchestrator.reconciling.classifying`     one tenant's rows against its stack
4. :mod:`orchestrator.reconciling.adopting`    tenants from before Berth
   :mod:`orchestrator.reconciling.adoption_writes`  the rules of what an adoption writes
5. :mod:`orchestrator.reconciling.repairing`   putting right what was found
6. :mod:`orchestrator.reconciling.reconciler`  the whole fleet
7. :mod:`orchestrator.reconciling.control`     asking for it
8. :mod:`orchestrator.reconciling.events`      what schedules and queues send, checked
9. :mod:`orchestrator.reconciling.health`      whether the control plane itself is well

:mod:`orchestrator.reconciling.ports` names what these need from the outside.
"""
