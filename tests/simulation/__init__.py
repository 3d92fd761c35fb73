"""A simulation of the whole control plane: the machines' real files and use cases, over fakes of AWS that fail by seed.

Simulated: :mod:`~tests.simulation.world` (the fakes), :mod:`~tests.simulation.environment` (the fakes on one clock),
    :mod:`~tests.simulation.aws` (what CloudFormation, SQS and Step Functions do; see also ``tests.fakes``)
Acting: :mod:`~tests.simulation.actors`, :mod:`~tests.simulation.actions`
Faults: :mod:`~tests.simulation.faults`
Promises: :mod:`~tests.simulation.checks`
Planted bugs, which show that the checks work: :mod:`~tests.simulation.planted_bugs`
The same for rollouts: :mod:`~tests.simulation.rollouts`

Words:

- a *seeded run* plays actions and faults that a seed decides; ``python -m tests.simulation`` plays many
- a *scenario* is one operation with a known start and end; tests inject one fault at each of its calls
- a *promise* is what Berth guarantees whatever happens; a check that fails raises ``Broken`` with the seed
- *seen* counts what has happened, so that tests can tell that everything that may happen did
- *around* is a function through which every call of a use case to the outside passes; it may fail or delay the call
- a tenant *belongs to* the execution that holds its lock
"""
