"""The ports of :mod:`orchestrator.ports`, in memory, and a few examples that tests share."""

from tests.fakes.examples import (
    ACME,
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    a_release,
    a_resource,
    a_run,
    an_attempt,
    an_audit,
    execution_arn,
    parameters_of,
    some_metadata,
    stack_arn,
    take,
)
from tests.fakes.others import FakeClock, FakeExecutions, FakeQueues, FakeTemplates, InMemoryCreateCounts
from tests.fakes.resources import FakeResources
from tests.fakes.rollouts import (
    FakeAlarms,
    FakeRolloutExecutions,
    FakeThrottling,
    InMemoryManifests,
    InMemoryRollouts,
)
from tests.fakes.stacks import FakeStack, FakeStacks
from tests.fakes.table import InMemoryTable

__all__ = [
    "ACME",
    "EXPLICIT",
    "NEXT_VERSION",
    "NOON",
    "OTHER_QUEUE",
    "QUEUE",
    "QUEUE_TABOO",
    "VERSION",
    "FakeAlarms",
    "FakeClock",
    "FakeExecutions",
    "FakeQueues",
    "FakeResources",
    "FakeRolloutExecutions",
    "FakeStack",
    "FakeStacks",
    "FakeTemplates",
    "FakeThrottling",
    "InMemoryCreateCounts",
    "InMemoryManifests",
    "InMemoryRollouts",
    "InMemoryTable",
    "a_release",
    "a_resource",
    "a_run",
    "an_attempt",
    "an_audit",
    "execution_arn",
    "parameters_of",
    "some_metadata",
    "stack_arn",
    "take",
]
