"""Takes webhooks and submissions of forms: who sends them is checked, and then they are accepted like any event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.common.times import Clock
from orchestrator.events.accepting import Accepting, NewEvent, Outcome
from orchestrator.events.authorising import Authorising, Standing
from orchestrator.events.challenges import CHECKING_METHODS, LISTENING, Challenge, challenge_in
from orchestrator.events.configuring_sources import secret_context
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.forms import (
    FormQuotas,
    Submission,
    WrongContentType,
    is_allowed_origin,
    read_submission,
)
from orchestrator.events.hops import TooManyHops, hops_metadata, hops_of
from orchestrator.events.incoming import Incoming, kept_headers
from orchestrator.events.ports import Secrets
from orchestrator.events.providers import announced
from orchestrator.events.quotas import OverLimit
from orchestrator.events.records import Content, EventSettings, Form, Provider, Source, SourceStatus
from orchestrator.events.resource_ids import IdPrefix, is_resource_id
from orchestrator.events.signatures import HEADER, Unverified, verify

EVENT_METHODS = ("POST", "PUT", "PATCH", "DELETE")
"""The methods of webhooks that are events."""
SUBMITTED_TYPE = "form.submitted"
"""The event type of every submission."""


@dataclass(frozen=True, slots=True)
class NoSuchAddress:
    """There is no source or form with this id, or its tenant is not alive."""


@dataclass(frozen=True, slots=True)
class Paused:
    what: str
    """``source`` or ``form``, with its id."""


@dataclass(frozen=True, slots=True)
class WrongMethod:
    allowed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OriginNotAllowed:
    """The page that sent the form is at none of the form's origins."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The outcome of accepting the event, for a request that nothing before had refused."""

    outcome: Outcome
    settings: EventSettings


@dataclass(frozen=True, slots=True)
class Trapped:
    """A submission that filled in the honeypot. It is answered like an accepted one, and nothing is stored."""

    settings: EventSettings
    event_id: str
    """An id that belongs to no event, for the answer."""


WebhookResult = NoSuchAddress | Paused | WrongMethod | TooManyHops | Unverified | Challenge | Decided
SubmissionResult = (
    NoSuchAddress | Paused | OriginNotAllowed | TooManyHops | WrongContentType | OverLimit | Trapped | Decided
)


@dataclass(frozen=True, slots=True)
class ReceivedWebhook:
    result: WebhookResult
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class ReceivedSubmission:
    result: SubmissionResult
    form: Form | None = None
    from_page: bool = False
    """True if a browser sent the form by itself. It follows a redirect, and a script does not."""


class Receiving:
    """``secrets`` makes the client for secrets when the first signature is checked."""

    def __init__(
        self,
        *,
        authorising: Authorising,
        accepting: Accepting,
        secrets: Callable[[], Secrets],
        form_quotas: FormQuotas,
        clock: Clock,
    ) -> None:
        self._authorising = authorising
        self._accepting = accepting
        self._secrets = secrets
        self._form_quotas = form_quotas
        self._clock = clock

    # Webhooks

    def webhook(self, source_id: str, incoming: Incoming) -> ReceivedWebhook:
        found = self._authorising.source(source_id) if is_resource_id(IdPrefix.SOURCE, source_id) else None
        if found is None:
            return ReceivedWebhook(NoSuchAddress())
        source, standing = found
        return ReceivedWebhook(self._webhook(source, standing, incoming), source)

    def _webhook(self, source: Source, standing: Standing, incoming: Incoming) -> WebhookResult:
        if source.status is SourceStatus.PAUSED:
            return Paused(f"source {source.source_id}")
        if incoming.method in CHECKING_METHODS:
            return LISTENING
        if incoming.method not in EVENT_METHODS:
            return WrongMethod((*EVENT_METHODS, *sorted(CHECKING_METHODS)))
        hops = hops_of(incoming.headers)
        if isinstance(hops, TooManyHops):
            return hops
        refused = self._unverified(source, incoming)
        if refused is not None:
            return refused
        challenge = challenge_in(source, incoming)
        if challenge is not None:
            return challenge
        announcement = announced(source, incoming)
        new = NewEvent(
            event_type=announcement.event_type,
            content=Content(incoming.body, kept_headers(incoming.headers, without=_secret_headers(source))),
            source_id=source.source_id,
            content_type=incoming.content_type,
            method=incoming.method,
            source_ip=incoming.source_ip,
            metadata=hops_metadata(hops),
            repetition_key=announcement.delivery_id,
        )
        return Decided(self._accepting.accept(standing, new), standing.settings)

    def _unverified(self, source: Source, incoming: Incoming) -> Unverified | None:
        secret = None
        if source.secret is not None:
            secret = self._secrets().decrypt(source.secret, source.life, secret_context(source.source_id))
        return verify(
            source.provider,
            secret,
            source.verification,
            incoming.headers,
            incoming.body,
            at=self._clock.now(),
        )

    # Forms

    def submission(self, form_id: str, incoming: Incoming) -> ReceivedSubmission:
        found = self._form(form_id)
        if found is None:
            return ReceivedSubmission(NoSuchAddress())
        form, standing = found
        if (refused := _refused(form, incoming)) is not None:
            return ReceivedSubmission(refused, form)
        hops = hops_of(incoming.headers)
        if isinstance(hops, TooManyHops):
            return ReceivedSubmission(hops, form)
        submission = read_submission(form, incoming)
        if isinstance(submission, WrongContentType):
            return ReceivedSubmission(submission, form)
        result = self._submitted(form, standing, submission, incoming, hops)
        return ReceivedSubmission(result, form, submission.from_page)

    def _submitted(
        self, form: Form, standing: Standing, submission: Submission, incoming: Incoming, hops: int
    ) -> SubmissionResult:
        if submission.is_trapped:
            # The honeypot comes before the quota, so that robots do not use up what is there for people.
            return Trapped(standing.settings, new_event_id(self._clock.now(), 0, submission=True))
        over = self._form_quotas.take(form)
        if over is not None:
            return over
        new = NewEvent(
            event_type=SUBMITTED_TYPE,
            content=Content(submission.payload),
            form_id=form.form_id,
            source_ip=incoming.source_ip,
            metadata=hops_metadata(hops),
        )
        return Decided(self._accepting.accept(standing, new), standing.settings)

    def form(self, form_id: str) -> Form | None:
        """The form, to answer a browser that asks whether a page may send it."""
        found = self._form(form_id)
        return found[0] if found else None

    def _form(self, form_id: str) -> tuple[Form, Standing] | None:
        return self._authorising.form(form_id) if is_resource_id(IdPrefix.FORM, form_id) else None


def _refused(form: Form, incoming: Incoming) -> Paused | OriginNotAllowed | None:
    if form.status is SourceStatus.PAUSED:
        return Paused(f"form {form.form_id}")
    return None if is_allowed_origin(form, incoming.headers.get("origin")) else OriginNotAllowed()


def _secret_headers(source: Source) -> frozenset[str]:
    """The header that holds the secret itself. A signature is no secret, and is kept."""
    return (
        frozenset({source.verification.get(HEADER, "").lower()})
        if source.provider is Provider.SHARED_SECRET
        else frozenset()
    )
