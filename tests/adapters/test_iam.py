"""The managed policies that the operator has named for tenants' stacks, as IAM has them."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest

from orchestrator.adapters.iam import IamStackPolicies
from tests.adapters.conftest import client

POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:*"], "Resource": "*"}]}
TABLES = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "dynamodb:CreateTable", "Resource": "*"}}


@pytest.mark.usefixtures("aws")
def test_the_default_version_of_every_policy_counts() -> None:
    iam = client("iam")
    arns = [
        iam.create_policy(PolicyName=name, PolicyDocument=json.dumps(document))["Policy"]["Arn"]
        for name, document in (("files", TABLES), ("tables", TABLES))
    ]
    policies = IamStackPolicies(lambda: iam, arns)
    assert policies.permissions().actions == {"dynamodb:createtable"}
    iam.create_policy_version(PolicyArn=arns[0], PolicyDocument=json.dumps(POLICY), SetAsDefault=True)
    assert policies.permissions().actions == {"s3:*", "dynamodb:createtable"}


def test_a_document_that_is_still_encoded_is_decoded() -> None:
    iam = Mock()
    iam.get_policy.return_value = {"Policy": {"DefaultVersionId": "v1"}}
    iam.get_policy_version.return_value = {"PolicyVersion": {"Document": "%7B%22Statement%22%3A%20%5B%5D%7D"}}
    assert IamStackPolicies(lambda: iam, ["arn:aws:iam::111122223333:policy/none"]).permissions().actions == frozenset()


def test_without_policies_iam_is_not_asked() -> None:
    new_client = Mock(side_effect=AssertionError)
    assert IamStackPolicies(new_client, ()).permissions().actions == frozenset()
