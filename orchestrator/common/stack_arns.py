"""Typed values for the ARN of a CloudFormation stack and for the account and region of a deployment.

A stack's ARN in an event is an unverified claim by the sender. The ARN is parsed as a whole, never searched for a part
that looks right, and then CloudFormation is asked about the stack.
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
    """The stack's name. ``stack_id`` is the stack's ARN or already its name."""
    return stack_id.split("/")[1] if stack_id.startswith("arn:") and "/" in stack_id else stack_id


@dataclass(frozen=True, slots=True)
class Location:
    """A partition, a region and an account of AWS, such as those that Berth is deployed to."""

    partition: str
    region: str
    account: str

    @classmethod
    def parse(cls, text: str) -> Location:
        """Parse ``partition:region:account``, the format of the functions' settings."""
        match = _LOCATION.fullmatch(text)
        if match is None:
            raise InvalidRequest(f"{text[:300]!a} does not have the form partition:region:account")
        return cls(**match.groupdict())

    def __str__(self) -> str:
        return f"{self.partition}:{self.region}:{self.account}"


@dataclass(frozen=True, slots=True)
class StackArn:
    """The identity of a stack. The name can be used again after the stack was deleted; the ``uuid`` cannot."""

    partition: str
    region: str
    account: str
    name: str
    uuid: str

    @classmethod
    def parse(cls, text: str) -> StackArn:
        # fullmatch rejects any text before or after the ARN, even a newline.
        match = _STACK_ARN.fullmatch(text)
        if match is None:
            raise InvalidRequest(f"StackId: {text[:300]!a} is not the ARN of a stack")
        return cls(**match.groupdict())

    @property
    def location(self) -> Location:
        return Location(self.partition, self.region, self.account)

    def __str__(self) -> str:
        return f"arn:{self.partition}:cloudformation:{self.region}:{self.account}:stack/{self.name}/{self.uuid}"
