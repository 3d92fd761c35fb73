"""The managed policies that the operator has named for tenants' stacks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from orchestrator.adapters.aws import throttling
from orchestrator.releases.service_permissions import Permissions


class IamStackPolicies:
    """Implements :class:`orchestrator.releases.ports.StackPolicies`.

    The policies are read when a template is checked: their owner may change them at any time.
    """

    def __init__(self, new_client: Callable[[], Any], arns: Sequence[str]) -> None:
        """``new_client`` is called only if there are policies to read."""
        self._new_client = new_client
        self._arns = arns

    def permissions(self) -> Permissions:
        if not self._arns:
            return Permissions()
        iam = self._new_client()
        documents: list[Mapping[str, Any]] = []
        with throttling():
            for arn in self._arns:
                version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
                document = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
                # The SDK decodes the document, unless it is an emulator's that is not encoded as AWS encodes it.
                documents.append(json.loads(unquote(document)) if isinstance(document, str) else document)
        return Permissions.of_policies(documents)
