"""The ARN of a CloudFormation stack, and where Berth itself is deployed, as typed values.

A stack's ARN in an event is a claim by whoever sent the event. It is parsed as a whole, never searched for a part that
looks right, and then CloudFormation is asked about the stack.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.common.errors import InvalidRequest

_PARTITION = r"(?P<partition>aws[a-z-]{0,20})"
_REGION = r"(?P<region>[a-z0-9-]{1,30})"
_ACCOUNT = r"(?P<account>\d{12})"
_LOCATION = re.compile(rf"{_PARTITION}:{_REGION}:{_ACCOUNT}", re.ASCII)
_STACK_ARN = re.compile(
    rf"arn:{_PARTITION}:cloudformation:{_REGION}:{_ACCOUNT}"
    r":stack/(?P<name>[A-Za-z][A-Za-z0-9-]{0,127})/(?P<uuid>[A-Za-z0-9-]{1,64})",
    re.ASCII,
)


def name_of(stack_id: str) -> str:
    """The stack's name, from its ARN; a name is its own."""
    return stack_id.split("/")[1] if stack_id.startswith("arn:") and "/" in stack_id else stack_id


@dataclass(frozen=True, slots=True)
class Location:
    """A partition, a region and an account of AWS."""

    partition: str
    region: str
    account: str

    @classmethod
    def parse(cls, text: str) -> Location:
        """From ``partition:region:account``, as the functions' settings have it."""
        match = _LOCATION.fullmatch(text)
        if match is None:
            raise InvalidRequest(f"{text[:300]!a} is not a partition, a region and an account")
        return cls(**match.groupdict())

    def __str__(self) -> str:
        return f"{self.partition}:{self.region}:{self.account}"


@dataclass(frozen=True, slots=True)
class StackArn:
    """Which stack it is: a name may be used again after its stack was deleted, the ``uuid`` never is."""

    partition: str
    region: str
    account: str
    name: str
    uuid: str

    @classmethod
    def parse(cls, text: str) -> StackArn:
        # fullmatch: nothing may stand before or after the ARN, not even a newline.
        match = _STACK_ARN.fullmatch(text)
        if match is None:
            raise InvalidRequest(f"StackId: {text[:300]!a} is not the ARN of a stack")
        return cls(**match.groupdict())

    @property
    def location(self) -> Location:
        return Location(self.partition, self.region, self.account)

    def __str__(self) -> str:
        return f"arn:{self.partition}:cloudformation:{self.region}:{self.account}:stack/{self.name}/{self.uuid}"
