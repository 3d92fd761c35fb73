"""HTTP answers to operators about releases. The command line shows the same documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from orchestrator.api.operator_answers import refuse
from orchestrator.api.release_routes import RELEASE_IMMUTABLE, TEMPLATE_REFUSED
from orchestrator.api.responses import Response, json_response, problem
from orchestrator.common.tiers import STANDARD
from orchestrator.common.times import readable, timestamp
from orchestrator.common.versions import order
from orchestrator.releases.publishing import Checked, Published, PublishedBefore
from orchestrator.releases.records import RecordedReleaseChange, Release, ReleaseOrder, Withdrawal
from orchestrator.releases.states import Choice, PromotionMode
from orchestrator.rollouts.releasing import ReleaseOrdered, ReleaseStatus
from orchestrator.tenants.admission import Refused
from orchestrator.tenants.records import TenantState
from orchestrator.tenants.release_changes import ReleaseChanges


def releases_response(
    releases: Sequence[Release],
    choices: Mapping[str, Choice],
    in_use: Mapping[str, Mapping[TenantState, int]],
    *,
    deployed: str,
    default_tier: str,
    promotion: PromotionMode,
    history: Sequence[RecordedReleaseChange] = (),
    counted_at: datetime,
) -> Response:
    """``choices`` has each tier that has releases. ``in_use`` has the number of tenants by version and state, including
    versions that are not releases."""
    standard = choices[STANDARD]
    newest_first = sorted(releases, key=lambda release: order(release.version), reverse=True)
    return json_response(
        200,
        {
            "current": standard.current,
            "tiers": {tier: choice.current for tier, choice in sorted(choices.items())},
            "defaultTier": default_tier,
            "deployed": deployed,
            "promotion": promotion.value,
            "countedAt": timestamp(counted_at),
            "releases": [
                {
                    "version": release.version,
                    "digest": release.digest,
                    "templateUrl": release.template_url,
                    "publishedAt": timestamp(release.published_at),
                    "publishedBy": release.published_by or None,
                    "notes": release.notes or None,
                    "tier": release.tier,
                    "current": release.version == choices[release.tier].current,
                    "withdrawn": _withdrawal_document(standard.withdrawn.get(release.version)),
                    "tenants": _counts_document(in_use.get(release.version, {})),
                }
                for release in newest_first
            ],
            "elsewhere": {
                version: _counts_document(counts)
                for version, counts in sorted(in_use.items())
                if version not in {release.version for release in releases}
            },
            "history": [_history_document(change) for change in history],
        },
    )


def _counts_document(counts: Mapping[TenantState, int]) -> dict[str, object]:
    return {"total": sum(counts.values()), "byState": {state.value: count for state, count in sorted(counts.items())}}


def _withdrawal_document(withdrawal: Withdrawal | None) -> dict[str, object] | None:
    if withdrawal is None:
        return None
    return {
        "at": timestamp(withdrawal.at),
        "requestedBy": withdrawal.by or None,
        "reason": withdrawal.reason or None,
    }


def _history_document(change: RecordedReleaseChange) -> dict[str, object]:
    return {
        "at": timestamp(change.at) if change.at else None,
        "order": change.order.value if change.order else None,
        "version": change.version,
        "requestedBy": change.by or None,
        "reason": change.reason or None,
        "altered": change.altered,
    }


def release_order_response(ordered: ReleaseOrdered | Refused) -> Response:
    if isinstance(ordered, Refused):
        return refuse(ordered)
    return json_response(
        200,
        {
            "version": ordered.version,
            "status": ordered.status.value,
            "detail": _detail(ordered),
            "tier": ordered.tier,
            "current": ordered.current,
            "currentBefore": ordered.before,
            "withdrawn": _withdrawal_document(ordered.withdrawal),
            "tenants": list(ordered.tenants),
            "hasMoreTenants": ordered.has_more_tenants,
            "rollouts": list(ordered.rollouts),
        },
    )


def _detail(ordered: ReleaseOrdered) -> str:
    version, unchanged = ordered.version, ordered.status is ReleaseStatus.UNCHANGED
    match ordered.order:
        case ReleaseOrder.PROMOTE:
            done = f"Release {version} was promoted before." if unchanged else f"Release {version} is promoted."
        case ReleaseOrder.WITHDRAW if unchanged and ordered.withdrawal:
            done = f"{ordered.withdrawal.sentence(version)}, which stays on record."
        case ReleaseOrder.WITHDRAW:
            done = f"Release {version} is withdrawn."
        case ReleaseOrder.REINSTATE:
            done = f"Release {version} is not withdrawn." if unchanged else f"Release {version} is reinstated."
    moved = f", instead of {ordered.before}" if ordered.before != ordered.current else ""
    new = _new_tenants(ordered.tier)
    return f"{done} {new} get {ordered.current}{moved}."


def _new_tenants(tier: str) -> str:
    return "New tenants" if tier == STANDARD else f"New tenants of the tier {tier}"


def _who_gets_what(published: Published) -> str:
    new, version, before = _new_tenants(published.release.tier), published.release.version, published.before
    if not published.is_older_than_current:
        return f"{new} get {published.current}."
    if published.current == before:
        return f"{new} get {before}. {version} is older than that."
    return (
        f"{new} get {published.current}, instead of {before}. Warning: {version} is older than {before}. To go back: "
        f"berth release promote {before}"
    )


def release_published_response(outcome: Published | PublishedBefore | Checked) -> Response:
    match outcome:
        case Checked():
            count = len(outcome.findings)
            return problem(
                TEMPLATE_REFUSED,
                f"Release {outcome.version} was not published. The template has "
                f"{f'{count} findings' if count > 1 else 'a finding'}, of which the first is: {outcome.findings[0]}",
                findings=_findings(outcome),
            )
        case PublishedBefore():
            return problem(
                RELEASE_IMMUTABLE,
                f"Release {outcome.release.version} was published before, {outcome.how}. A release never changes, so "
                "nothing was published. Publish this template under another version.",
            )
    release = outcome.release
    at = readable(release.published_at)
    done = "is published" if outcome.is_new else f"was published with this template at {at}"
    return json_response(
        200,
        {
            "version": release.version,
            "status": "PUBLISHED" if outcome.is_new else "UNCHANGED",
            "detail": f"Release {release.version} {done}. {_who_gets_what(outcome)}",
            "digest": release.digest,
            "templateUrl": release.template_url,
            "publishedAt": timestamp(release.published_at),
            "tier": release.tier,
            "current": outcome.current,
        },
    )


def release_checked_response(checked: Checked) -> Response:
    return json_response(
        200,
        {
            "version": checked.version,
            "digest": checked.digest,
            "findings": _findings(checked),
            "comparedWith": checked.compared_with,
        },
    )


def _findings(checked: Checked) -> list[dict[str, str]]:
    return [finding.as_document() for finding in checked.findings]


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
