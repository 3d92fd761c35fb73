"""The interface between a capability and the stack that it is part of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from stacks.common.alarms import Alarm
from stacks.common.dead_letters import DeadLetters

if TYPE_CHECKING:
    from stacks.common.functions import BerthFunction


@dataclass(frozen=True, slots=True)
class Output:
    """An output of the stack. `berth` and the tests find resources by the outputs."""

    name: str
    value: str
    export_name: str | None = None
    """The name by which other stacks import the value."""


class Capability(Construct):
    """A construct that lists its functions, dead letters, alarms, graphs and outputs.

    :mod:`stacks.common.plane` loops over these. A property that a capability does not override is empty.
    """

    @property
    def functions(self) -> Sequence[BerthFunction]:
        """All functions of the capability. One alarm of the control plane is about the failed calls of all of them."""
        return ()

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        """Each dead-letter queue gets an alarm and a line on the dashboard, and `berth doctor` checks it."""
        return ()

    @property
    def alarms(self) -> Sequence[Alarm]:
        """The capability's own alarms, besides those of its dead letters."""
        return ()

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        """The graphs on the dashboard, if there is one, made by :mod:`stacks.common.graphs`."""
        return ()

    @property
    def outputs(self) -> Sequence[Output]:
        return ()
