"""SDK sessions whose credentials and region are given explicitly, not by the environment."""

from __future__ import annotations

from collections.abc import Mapping

import botocore.session
from boto3.session import Session


def session_without_profile(settings: Mapping[str, str]) -> Session:
    """A session of these settings only.

    AWS_PROFILE is ignored: the SDK would fail if that profile does not exist, even though credentials are given.
    """
    core = botocore.session.Session(session_vars={"profile": (None, None, None, None)})
    return Session(
        settings["aws_access_key_id"],
        settings["aws_secret_access_key"],
        settings.get("aws_session_token"),
        region_name=settings["region_name"],
        botocore_session=core,
    )
