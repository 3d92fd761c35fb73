"""HTTP answers to operators about the differences between releases."""

from __future__ import annotations

from orchestrator.api.operator_answers import refuse
from orchestrator.api.responses import Response, json_response
from orchestrator.common.times import timestamp
from orchestrator.tenants.admission import Refused
from orchestrator.tenants.release_changes import ReleaseChanges


def release_changes_response(found: ReleaseChanges | Refused) -> Response:
    if isinstance(found, Refused):
        return refuse(found)
    review = found.review
    return json_response(
        200,
        {
            "fromVersion": found.origin,
            "version": found.target,
            "changes": None if found.changes is None else [change.as_document() for change in found.changes],
            "review": {"reviewedAt": timestamp(review.at), "changeSet": review.change_set} if review else None,
        },
    )
