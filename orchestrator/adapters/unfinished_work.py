"""Asks the function that knows a tenant's unfinished work, if there is one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class LambdaUnfinishedWork:
    """Implements :class:`orchestrator.tenants.ports.UnfinishedWork`."""

    def __init__(self, make_client: Callable[[], LambdaClient], function: str) -> None:
        self._make_client = make_client
        self._function = function

    @cached_property
    def _client(self) -> LambdaClient:
        return self._make_client()

    def unfinished(self, tenant: TenantId) -> Mapping[str, int]:
        payload = json.dumps({"tenantId": tenant.value})
        try:
            with throttling():
                response = self._client.invoke(FunctionName=self._function, Payload=payload)
        except ClientError as error:
            if error_code(error) != "ResourceNotFoundException":
                raise
            # No other stack is deployed, so there is no such work.
            return {}
        if response.get("FunctionError"):
            raise self._failed(tenant)
        try:
            unfinished = json.loads(response["Payload"].read())["unfinished"]
            return {str(name): int(number) for name, number in unfinished.items()}
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise self._failed(tenant) from error

    def _failed(self, tenant: TenantId) -> Unsettled:
        return Unsettled(
            f"Tenant {tenant}: the function {self._function} failed, so it is not known whether the tenant has "
            "unfinished work. Nothing was deleted. Look at the function's log and try again, or force the deletion."
        )
