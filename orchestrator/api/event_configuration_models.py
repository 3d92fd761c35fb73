"""The wire models of event settings, API keys, sources and forms."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from orchestrator.api.event_fields import EventRequest, EventWire
from orchestrator.api.fields import Moment, TenantIdText, whole
from orchestrator.common.input_limits import REASON_PATTERN
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events import plans, records
from orchestrator.events.api_keys import KEY_PATTERN
from orchestrator.events.configuring import SettingsChange
from orchestrator.events.configuring_forms import MAX_FORMS, FormChange
from orchestrator.events.configuring_keys import DEFAULT_OVERLAP, MAX_KEYS, MAX_LIFETIME, MAX_OVERLAP
from orchestrator.events.configuring_sources import MAX_SOURCES, NewSource
from orchestrator.events.resource_ids import IdPrefix, id_pattern
from orchestrator.events.signatures import MAX_SECRET_CHARACTERS

MAX_ORIGINS = 20
MAX_NAME_CHARACTERS = 100
ORIGIN_PATTERN = r"^https?://[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[0-9]{1,5})?$"

# Values

Plan = Annotated[
    plans.Plan, Meta(title="Plan", description="The plan decides retention, events per month and events per second.")
]
Scope = Annotated[
    records.Scope,
    Meta(title="Scope", description="read: read events. write: send and acknowledge them. admin: everything."),
]
Provider = Annotated[
    records.Provider,
    Meta(title="Provider", description="The sender of the webhooks, which decides how a signature is checked."),
]
SourceStatus = Annotated[
    records.SourceStatus,
    Meta(
        title="SourceStatus",
        description="While a source or form is paused, requests to its address are refused with a 409.",
    ),
]
KeyStatus = Annotated[Literal["active", "expired", "revoked"], Meta(description="Only an active key works.")]
ResourceName = Annotated[
    str,
    Meta(
        title="ResourceName",
        description="A display name, in one line.",
        pattern=whole(REASON_PATTERN),
        min_length=1,
        max_length=MAX_NAME_CHARACTERS,
        examples=["Shop, production"],
    ),
]
_EXAMPLE = "0123456789abcdef01234567"
KeyId = Annotated[
    str, Meta(title="KeyId", pattern=whole(id_pattern(IdPrefix.KEY)), examples=[f"{IdPrefix.KEY}_{_EXAMPLE}"])
]
SourceId = Annotated[
    str, Meta(title="SourceId", pattern=whole(id_pattern(IdPrefix.SOURCE)), examples=[f"{IdPrefix.SOURCE}_{_EXAMPLE}"])
]
FormId = Annotated[
    str, Meta(title="FormId", pattern=whole(id_pattern(IdPrefix.FORM)), examples=[f"{IdPrefix.FORM}_{_EXAMPLE}"])
]
Scopes = Annotated[list[Scope], Meta(min_length=1, max_length=3)]
Verification = Annotated[
    dict[str, Annotated[str, Meta(max_length=200)]],
    Meta(
        title="Verification",
        description="For hmac and shared-secret: `header` has the signature or the secret. For hmac also `algorithm` "
        "(sha256, sha1 or sha512), `encoding` (hex or base64) and `prefix`, such as sha256=. `event_type_header` and "
        "`delivery_id_header` name the headers with the event's type and the delivery's id.",
        max_length=6,
        examples=[{"header": "X-Signature", "encoding": "hex"}],
    ),
]
Secret = Annotated[
    str,
    Meta(
        title="Secret",
        description="The secret that the provider signs with. It is kept encrypted, and never shown again.",
        min_length=1,
        max_length=MAX_SECRET_CHARACTERS,
        extra_json_schema={"writeOnly": True},
    ),
]
Origins = Annotated[
    list[Annotated[str, Meta(pattern=whole(ORIGIN_PATTERN), examples=["https://www.example.com"])]],
    Meta(
        title="Origins",
        description="The origins of the pages that may send the form: scheme, host in lower case, and port if it is "
        "not the usual one. Empty: any page may send it.",
        max_length=MAX_ORIGINS,
        examples=[["https://www.example.com"]],
    ),
]
RedirectUrl = Annotated[
    str,
    Meta(
        title="RedirectUrl",
        description="The page that a browser is sent to after it has submitted the form. It is at one of the origins.",
        pattern=r"^https?://[!-~]{1,1000}\Z",
        examples=["https://www.example.com/thanks"],
    ),
]
Honeypot = Annotated[
    str,
    Meta(
        title="Honeypot",
        description="The name of a field that people do not see. A submission that fills it in is dropped.",
        pattern=r"^[A-Za-z0-9_.-]{1,64}\Z",
        examples=["website"],
    ),
]
SubmissionsPerMinute = Annotated[
    int, Meta(title="SubmissionsPerMinute", description="How many submissions are accepted per minute.", ge=1, le=6000)
]
_PATH = Meta(description="The path of the address, below the URL of the Events API.")


# Settings


class NoParameters(EventRequest, frozen=True, kw_only=True):
    """A request without parameters."""


class Settings(EventWire, frozen=True, kw_only=True):
    """The event settings of a tenant, and the limits of its plan."""

    tenant_id: TenantIdText
    tenant_name: Annotated[str, Meta(description="The display name. Empty if there is none.")]
    plan: Plan
    retention_hours: Annotated[int, Meta(ge=1, description="How long finished events can be read.")]
    events_per_month: Annotated[int, Meta(ge=1)]
    events_per_second: Annotated[int, Meta(ge=1)]
    shards: Annotated[int, Meta(ge=1, le=16, description="The partitions among which the events are spread.")]
    inbox: Annotated[bool, Meta(description="True if events wait in the inbox until they are acknowledged.")]
    type_index: Annotated[bool, Meta(description="True if events can be listed by type.")]
    created_at: Moment
    updated_at: Moment


class ChangeSettings(EventRequest, frozen=True, kw_only=True):
    """The settings to change. Those that are left out stay as they are.

    New settings have the plan free, an inbox and an index by type.
    """

    tenant_id: TenantIdText = field(name="tenantId")
    plan: Plan | UnsetType = UNSET
    inbox: (
        Annotated[bool, Meta(description="Let events wait in the inbox until they are acknowledged.")] | UnsetType
    ) = UNSET
    type_index: Annotated[bool, Meta(description="Let events be listed by type.")] | UnsetType = UNSET
    tenant_name: (
        Annotated[
            str,
            Meta(description="The display name.", pattern=whole(REASON_PATTERN), max_length=MAX_NAME_CHARACTERS),
        ]
        | UnsetType
    ) = UNSET

    @property
    def tenant(self) -> TenantId:
        return TenantId.parse(self.tenant_id)

    def to_domain(self) -> SettingsChange:
        return SettingsChange(
            plan=None if self.plan is UNSET else self.plan,
            inbox=None if self.inbox is UNSET else self.inbox,
            type_index=None if self.type_index is UNSET else self.type_index,
            tenant_name=None if self.tenant_name is UNSET else self.tenant_name,
        )


# Keys


class CreateKey(EventRequest, frozen=True, kw_only=True):
    name: ResourceName
    scopes: Scopes
    expires_in_seconds: (
        Annotated[
            int,
            Meta(
                ge=60,
                le=int(MAX_LIFETIME.total_seconds()),
                description="How long the key works. Default: until it is revoked.",
            ),
        ]
        | UnsetType
    ) = UNSET


class OfKey(EventRequest, frozen=True, kw_only=True):
    key_id: KeyId = field(name="keyId")


class RotateKey(OfKey, frozen=True, kw_only=True):
    overlap_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=int(MAX_OVERLAP.total_seconds()),
            description="How long the old key still works.",
        ),
    ] = int(DEFAULT_OVERLAP.total_seconds())


class Key(EventWire, frozen=True, kw_only=True):
    """An API key, without the key itself."""

    tenant_id: TenantIdText
    key_id: KeyId
    name: ResourceName
    prefix: Annotated[str, Meta(description="The beginning of the key.", examples=["bk_live_Zk3f9A"])]
    scopes: Scopes
    status: KeyStatus
    created_at: Moment
    expires_at: Moment | None
    last_used_at: Annotated[Moment | None, Meta(description="Recorded at most once per hour. null: never used.")]


class IssuedKey(Key, frozen=True, kw_only=True):
    """A new API key. The key itself is in this answer only: it is not kept, and cannot be shown again."""

    key: Annotated[str, Meta(pattern=whole(KEY_PATTERN))]
    replaced: Annotated[
        Key | None, Meta(description="The key that was rotated, with the time until which it still works.")
    ]

    def __repr__(self) -> str:
        """Show only the key's id, so that the key is not printed or logged by accident."""
        return f"IssuedKey(key_id={self.key_id!r}, ...)"


class Keys(EventWire, frozen=True, kw_only=True):
    """All API keys of a tenant, oldest first."""

    keys: Annotated[list[Key], Meta(max_length=MAX_KEYS)]


# Sources


class CreateSource(EventRequest, frozen=True, kw_only=True):
    name: ResourceName
    provider: Provider
    secret: (
        Annotated[
            Secret,
            Meta(
                description="The secret that the provider signs with. If it is left out, Berth makes one for github, "
                "standard-webhooks, hmac and shared-secret. It is required for stripe, shopify and slack, which make "
                "their own. A source of the provider none has no secret."
            ),
        ]
        | UnsetType
    ) = UNSET
    verification: Verification | UnsetType = UNSET

    def to_domain(self) -> NewSource:
        return NewSource(
            self.name,
            self.provider,
            None if self.secret is UNSET else self.secret,
            {} if self.verification is UNSET else self.verification,
        )

    def __repr__(self) -> str:
        """Leave the secret out, so that it is not printed or logged by accident."""
        return f"CreateSource(name={self.name!r}, provider={self.provider!r}, ...)"


class OfSource(EventRequest, frozen=True, kw_only=True):
    source_id: SourceId = field(name="sourceId")


class Source(EventWire, frozen=True, kw_only=True):
    """An address at which webhooks come in."""

    tenant_id: TenantIdText
    source_id: SourceId
    name: ResourceName
    provider: Provider
    verification: Verification
    status: SourceStatus
    path: Annotated[str, _PATH]
    created_at: Moment


class CreatedSource(Source, frozen=True, kw_only=True):
    """A new source."""

    secret: Annotated[
        str | None,
        Meta(
            description="The secret, if it was made here: give it to the sender. It cannot be shown again. null if "
            "the request had the secret, or if the source has none."
        ),
    ]

    def __repr__(self) -> str:
        """Leave the secret out, so that it is not printed or logged by accident."""
        return f"CreatedSource(source_id={self.source_id!r}, ...)"


class Sources(EventWire, frozen=True, kw_only=True):
    """All sources of a tenant, oldest first."""

    sources: Annotated[list[Source], Meta(max_length=MAX_SOURCES)]


class DeletedSource(EventWire, frozen=True, kw_only=True):
    """The source is deleted. Its events stay until they expire."""

    tenant_id: TenantIdText
    source_id: SourceId


# Forms


class CreateForm(EventRequest, frozen=True, kw_only=True):
    name: ResourceName
    origins: Origins | UnsetType = UNSET
    redirect_url: RedirectUrl | UnsetType = UNSET
    honeypot: Honeypot | UnsetType = UNSET
    submissions_per_minute: SubmissionsPerMinute | UnsetType = UNSET

    def to_domain(self) -> FormChange:
        return FormChange(
            origins=None if self.origins is UNSET else tuple(self.origins),
            redirect_url=None if self.redirect_url is UNSET else self.redirect_url,
            honeypot=None if self.honeypot is UNSET else self.honeypot,
            submissions_per_minute=None if self.submissions_per_minute is UNSET else self.submissions_per_minute,
        )


class OfForm(EventRequest, frozen=True, kw_only=True):
    form_id: FormId = field(name="formId")


class UpdateForm(OfForm, frozen=True, kw_only=True):
    """The fields to change. Those that are left out stay as they are."""

    name: ResourceName | UnsetType = UNSET
    origins: Origins | UnsetType = UNSET
    redirect_url: Annotated[RedirectUrl | None, Meta(description="null: no redirect.")] | UnsetType = UNSET
    honeypot: Annotated[Honeypot | None, Meta(description="null: no such field.")] | UnsetType = UNSET
    submissions_per_minute: SubmissionsPerMinute | UnsetType = UNSET

    def to_domain(self) -> FormChange:
        return FormChange(
            name=None if self.name is UNSET else self.name,
            origins=None if self.origins is UNSET else tuple(self.origins),
            redirect_url=None if self.redirect_url is UNSET else self.redirect_url or "",
            honeypot=None if self.honeypot is UNSET else self.honeypot or "",
            submissions_per_minute=None if self.submissions_per_minute is UNSET else self.submissions_per_minute,
        )


class Form(EventWire, frozen=True, kw_only=True):
    """An address at which submissions of a form come in."""

    tenant_id: TenantIdText
    form_id: FormId
    name: ResourceName
    origins: Origins
    redirect_url: RedirectUrl | None
    honeypot: Honeypot | None
    submissions_per_minute: SubmissionsPerMinute
    status: SourceStatus
    path: Annotated[str, _PATH]
    created_at: Moment


class Forms(EventWire, frozen=True, kw_only=True):
    """All forms of a tenant, oldest first."""

    forms: Annotated[list[Form], Meta(max_length=MAX_FORMS)]


class DeletedForm(EventWire, frozen=True, kw_only=True):
    """The form is deleted. Its submissions stay until they expire."""

    tenant_id: TenantIdText
    form_id: FormId
