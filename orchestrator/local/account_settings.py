"""Makes the emulator report the quota of concurrent functions that AWS gives to accounts by default.

The emulator throttles calls beyond a limit of its own, which protects the memory of this machine
(:mod:`orchestrator.local.emulator`), and reports that limit as the account's quota. `berth doctor` would advise to have
the quota raised, which nobody can do here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

QUOTA = 1000


def report_the_quota_of_aws() -> None:
    """Patch the emulator in this process."""
    from ministack.services import lambda_svc  # type: ignore[import-untyped]

    get_account_settings: Callable[[], tuple[int, dict[str, str], bytes]] = lambda_svc._get_account_settings

    def with_the_quota_of_aws() -> tuple[int, dict[str, str], bytes]:
        status, headers, body = get_account_settings()
        settings: dict[str, Any] = json.loads(body)
        settings["AccountLimit"] |= {"ConcurrentExecutions": QUOTA}
        return status, headers, json.dumps(settings).encode()

    lambda_svc._get_account_settings = with_the_quota_of_aws
