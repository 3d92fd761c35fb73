"""Moving the fleet to a release: in stages, as fast as CloudFormation can keep up with, and no further than is safe.

Read it in this order:

1. :mod:`orchestrator.rollouts.records`    what is asked for, and what is remembered about it
2. :mod:`orchestrator.rollouts.selecting`  which tenants, in which stage; who is left out, and why
3. :mod:`orchestrator.rollouts.pacing`     how many at once: carefully at first, and less when CloudFormation throttles
4. :mod:`orchestrator.rollouts.planning`   the rollout as it is written down
5. :mod:`orchestrator.rollouts.control`    start, pause, resume, abort, approve, retry, undo

What the machine does then:

6. :mod:`orchestrator.rollouts.advancing`  what comes next for the rollout as a whole
7. :mod:`orchestrator.rollouts.gate`       what comes next for one tenant: admitted, and later what became of it
8. :mod:`orchestrator.rollouts.reviewing`  a dry run's look at one tenant

:mod:`orchestrator.rollouts.steps` is what the machine sends, :mod:`orchestrator.rollouts.finding` looks tenants up,
:mod:`orchestrator.rollouts.documents` is how wishes are written down, and :mod:`orchestrator.rollouts.ports` what all
of it needs from the outside.
"""
