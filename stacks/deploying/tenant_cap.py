"""Choose the maximum number of tenants, if nobody has set it: 95 % of the account's quota of stacks."""

from __future__ import annotations

from stacks.deploying.choices import Choice
from stacks.settings import MAX_TENANTS_LIMIT

SETTING = "berth:maxTenants"

_KEPT_FREE = 20
"""One in 20 stacks is kept free, for the control plane, the CDK and other teams."""


def choose(stack_limit: int, tenants: int | None) -> Choice:
    """``stack_limit`` is the account's quota of stacks in this region.

    ``tenants`` is the current number of tenants, if it is known.
    """
    chosen = min(max(stack_limit - stack_limit // _KEPT_FREE, 1), MAX_TENANTS_LIMIT)
    message = f"The limit is {chosen} tenants ({SETTING}): the account may have {stack_limit} stacks in this region."
    if tenants is None:
        message += " The current number of tenants could not be read: run `berth doctor` afterwards."
    elif tenants >= chosen:
        message += (
            f" WARNING: there are {tenants} tenants, so no further tenant will be created. Have AWS raise the quota "
            "(Service Quotas, AWS CloudFormation, Stack count) and deploy again, or deploy with a higher limit: "
            f"-c {SETTING}=N."
        )
    return Choice(chosen, message)
