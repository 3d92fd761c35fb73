"""Forms of a tenant: create, list, update, pause, resume, delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.times import Clock
from orchestrator.events.configuring import ROUNDS, unsettled
from orchestrator.events.ports import ConfigurationTable
from orchestrator.events.records import EventSettings, Form, SourceStatus, TenantEpoch
from orchestrator.events.refusals import EventRefusal, Refused
from orchestrator.events.resource_ids import IdPrefix, new_resource_id

MAX_FORMS = 100


@dataclass(frozen=True, slots=True)
class FormChange:
    """The fields of a form to change. ``None`` leaves a field as it is; an empty text removes it."""

    name: str | None = None
    origins: tuple[str, ...] | None = None
    redirect_url: str | None = None
    honeypot: str | None = None
    submissions_per_minute: int | None = None
    status: SourceStatus | None = None

    def of(self, form: Form) -> Form:
        changed = replace(
            form,
            name=form.name if self.name is None else self.name,
            origins=form.origins if self.origins is None else self.origins,
            redirect_url=form.redirect_url if self.redirect_url is None else self.redirect_url or None,
            honeypot=form.honeypot if self.honeypot is None else self.honeypot or None,
            submissions_per_minute=self.submissions_per_minute or form.submissions_per_minute,
            status=self.status or form.status,
        )
        _check_redirect(changed)
        return changed


class ConfiguringForms:
    def __init__(self, *, table: ConfigurationTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def list(self, life: TenantEpoch) -> Sequence[Form]:
        return self._table.forms(life)

    def find(self, life: TenantEpoch, form_id: str) -> Form | Refused:
        form = self._table.form(form_id)
        return form if form is not None and form.life == life else _unknown(life, form_id)

    def create(self, settings: EventSettings, name: str, options: FormChange) -> Form | Refused:
        life, tenant = settings.life, settings.life.tenant
        form = options.of(
            Form(
                life=life,
                form_id=new_resource_id(IdPrefix.FORM),
                name=name,
                status=SourceStatus.ACTIVE,
                created_at=self._clock.now(),
            )
        )
        for _ in range(ROUNDS):
            # Read before the forms: adding one after this read makes the write fail.
            current = self._table.settings(tenant)
            if current is None or current.life != life:
                raise unsettled(tenant)
            if (count := len(self._table.forms(life))) >= MAX_FORMS:
                return Refused(
                    EventRefusal.LIMIT_REACHED,
                    tenant,
                    f"Tenant {tenant} has {count} forms, and {MAX_FORMS} is the limit. Delete a form that nobody uses, "
                    "and try again.",
                )
            if self._table.add_form(form, current):
                return form
        raise unsettled(tenant)

    def change(self, life: TenantEpoch, form_id: str, change: FormChange) -> Form | Refused:
        """Change the form. Nothing is written if it is already as requested."""
        for _ in range(ROUNDS):
            form = self.find(life, form_id)
            if isinstance(form, Refused):
                return form
            changed = change.of(form)
            if changed == form or self._table.change_form(form, changed):
                return changed
        raise unsettled(life.tenant)

    def delete(self, life: TenantEpoch, form_id: str) -> Form | Refused:
        """Delete the form. That is refused while there are connections of its events."""
        # Imported here, because the function that takes webhooks and forms uses this module, too, and must start fast.
        from orchestrator.events.configuring_connections import refusal_to_delete

        form = self.find(life, form_id)
        if isinstance(form, Refused):
            return form
        for _ in range(ROUNDS):
            # Read before the connections: adding one after this read makes the write fail.
            settings = self._table.settings(life.tenant)
            if settings is None or settings.life != life:
                raise unsettled(life.tenant)
            if refused := refusal_to_delete(self._table, life, form_id):
                return refused
            # A delete that another request has finished first is done, too.
            if self._table.remove_form(form, settings) or isinstance(self.find(life, form_id), Refused):
                return form
        raise unsettled(life.tenant)


def _check_redirect(form: Form) -> None:
    """A redirect to any other place would make the form an open redirect."""
    if form.redirect_url is None:
        return
    if _origin(form.redirect_url) not in form.origins:
        raise InvalidRequest(
            "redirect_url: the page is not at one of the form's origins. Add its origin (scheme, host and port) to "
            "origins, or leave redirect_url out."
        )


def _origin(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidRequest("redirect_url: it is not a URL.") from None
    return f"{parts.scheme}://{parts.netloc}"


def _unknown(life: TenantEpoch, form_id: str) -> Refused:
    return Refused(
        EventRefusal.NO_SUCH_FORM,
        life.tenant,
        f"Tenant {life.tenant} has no form {form_id}. List its forms to see their ids.",
    )
