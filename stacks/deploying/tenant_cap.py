"""How many tenants there may be, where nobody has said: as many as the account may have stacks, less a few."""

from __future__ import annotations

from stacks.deploying.choices import Choice
from stacks.settings import MAX_TENANTS_AT_MOST

SETTING = "berth:maxTenants"

_KEPT_FREE = 20
"""One stack in so many is kept free: the control plane, the CDK and other teams have stacks, too."""


def choose(stack_limit: int, tenants: int | None) -> Choice:
    """``stack_limit`` is how many stacks the account may have in this region.

    ``tenants`` is how many there are, if that is known.
    """
    chosen = min(max(stack_limit - stack_limit // _KEPT_FREE, 1), MAX_TENANTS_AT_MOST)
    told = f"There may be {chosen} tenants ({SETTING}): the account may have {stack_limit} stacks in this region."
    if tenants is None:
        told += " How many tenants there are could not be read: see berth doctor afterwards."
    elif tenants >= chosen:
        told += (
            f" WARNING: there are {tenants} tenants, so no further tenant will be created. Have the quota raised "
            "(Service Quotas, AWS CloudFormation, Stack count) and deploy again, or deploy with a higher number: "
            f"-c {SETTING}=N."
        )
    return Choice(chosen, told)
