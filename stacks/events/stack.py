"""Berth's event plane: what arrives for a tenant is accepted once, kept, read, and delivered.

It is a stack of its own, deployed after the control plane. It uses the control plane's table and the machine that
deletes tenants. The control plane knows nothing of it but the name of one function, which it asks, if there is one,
before it deletes a tenant.
"""

from __future__ import annotations

from aws_cdk import Stack
from constructs import Construct

from stacks.common.capability import Capability
from stacks.common.functions import FunctionKit
from stacks.common.plane import compose
from stacks.control_plane import ControlPlaneStack
from stacks.events.access import EventAccess
from stacks.events.contents import Contents
from stacks.events.delivery import Delivery
from stacks.events.gateway import EventsApi
from stacks.events.mail import Mail
from stacks.events.own_events import OwnEvents
from stacks.events.purging import Purging
from stacks.events.secrets_key import SecretsKey
from stacks.events.table import EventsTable
from stacks.events.unfinished import UnfinishedWork
from stacks.events.usage import Usage
from stacks.settings import Settings


class EventsStack(Stack):
    def __init__(self, scope: Construct, *, control_plane: ControlPlaneStack, version: str, settings: Settings) -> None:
        super().__init__(
            scope,
            settings.names.events,
            description=f"Berth {version}: accepts, keeps, shows and delivers the events of tenants.",
            analytics_reporting=False,
            # Producers know the API's URL, which a new stack would not have.
            termination_protection=True,
        )
        self.names = settings.names
        encryption = control_plane.encryption
        kit = FunctionKit.create(
            self, table=control_plane.table, encryption=encryption, version=version, settings=settings
        )
        table = EventsTable(self, "Events", encryption=encryption)
        contents = Contents(self, "Contents", encryption=encryption)
        secrets = SecretsKey(self, "Secrets", settings=settings)
        own_events = OwnEvents(self, "OwnEvents", kit=kit)
        usage = Usage(self, "Usage", kit=kit, events=table, publish_events=own_events.publish_events)
        sender = settings.events_mail_from
        mail = Mail(self, "Mail", kit=kit, events=table, sender=sender) if sender is not None else None
        delivery = Delivery(
            self, "Delivery", kit=kit, events=table, contents=contents, secrets=secrets, mail=mail, settings=settings
        )
        purging = Purging(
            self,
            "Purging",
            kit=kit,
            events=table,
            contents=contents,
            delete_tenant=control_plane.machines.delete,
            settings=settings,
        )
        unfinished = UnfinishedWork(self, "Unfinished", kit=kit, events=table)
        behind_api: list[Capability] = [table, contents, secrets, usage, delivery, purging, unfinished, own_events]
        behind_api += [mail] if mail is not None else []
        api = EventsApi(
            self,
            "Api",
            kit=kit,
            events=table,
            contents=contents,
            secrets=secrets,
            delivery=delivery,
            dead_letters=[each for capability in behind_api for each in capability.dead_letters],
            settings=settings,
        )
        delivery.never_deliver_to(api.host)
        if settings.credentials_seconds:
            EventAccess(
                self,
                "Access",
                issuer=api.event_operators,
                events=table,
                encryption=encryption,
                seconds=settings.credentials_seconds,
            )
        compose(self, [api, *behind_api], version=version, settings=settings)
