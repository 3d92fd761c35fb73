"""What a capability exposes of itself to the stack that it is part of."""

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
    """An output of the stack: `berth` and the tests find things by these."""

    name: str
    value: str
    export_name: str | None = None
    """The name by which other stacks import the value."""


class Capability(Construct):
    """A construct that says what of it is watched, shown and output. :mod:`stacks.common.plane` loops over these.

    Each property that a capability does not override is empty.
    """

    @property
    def functions(self) -> Sequence[BerthFunction]:
        """All functions of the capability. Each gets the alarms that every function has."""
        return ()

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        """Each gets an alarm and a line on the dashboard, and `berth doctor` looks at it."""
        return ()

    @property
    def alarms(self) -> Sequence[Alarm]:
        """The alarms besides those of the functions and the dead letters."""
        return ()

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        """The graphs on the dashboard, made by :mod:`stacks.common.graphs`."""
        return ()

    @property
    def outputs(self) -> Sequence[Output]:
        return ()
