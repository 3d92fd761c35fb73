"""Moving the fleet to a release, stage by stage, as fast as CloudFormation allows. A rollout halts if too many fail.

Read the modules in this order:

1. :mod:`orchestrator.rollouts.records`    the spec and the recorded state of a rollout
2. :mod:`orchestrator.rollouts.selecting`  selecting the tenants of each stage, and the reasons why others are skipped
3. :mod:`orchestrator.rollouts.pacing`     the concurrency limit, which adapts to CloudFormation's throttling
4. :mod:`orchestrator.rollouts.planning`   turning a spec and its tenants into a recorded rollout
5. :mod:`orchestrator.rollouts.selector`   reading the fleet's records and selecting the tenants to move
6. :mod:`orchestrator.rollouts.control`    start, pause, resume, abort, approve, retry, undo
   :mod:`orchestrator.rollouts.adjusting`  promote a stage that waits, change the pace
   :mod:`orchestrator.rollouts.releasing`  promote, withdraw and reinstate a release

The state machine then calls:

7. :mod:`orchestrator.rollouts.advancing`  the next step of the rollout as a whole
8. :mod:`orchestrator.rollouts.gate`       admitting one tenant, and later recording its outcome
9. :mod:`orchestrator.rollouts.counting`   adding a tenant's turn to the counters of its stage
10. :mod:`orchestrator.rollouts.reviewing` a dry run's review of one tenant

Creates are paced in the same way, each on its own:

11. :mod:`orchestrator.rollouts.create_turns`  the creates that may change stacks now, and how long others wait
12. :mod:`orchestrator.rollouts.create_gate`   giving a create its turn, or a place in the line

:mod:`orchestrator.rollouts.steps` parses the state machine's payloads, :mod:`orchestrator.rollouts.finding` looks up
tenants, :mod:`orchestrator.rollouts.listing` lists rollouts, :mod:`orchestrator.rollouts.stalling` finds those whose
execution has died, :mod:`orchestrator.rollouts.documents` converts specs to and from JSON,
:mod:`orchestrator.rollouts.resource_changes` has the changes that dry runs find,
:mod:`orchestrator.rollouts.refusals` words the refusals, and :mod:`orchestrator.rollouts.ports` has the interfaces that
adapters implement.
"""
