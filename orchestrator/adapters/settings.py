"""The settings of a function: its environment variables, typed. A missing one is an error.

The types of settings are imported where they are parsed, because few functions need them, and some must start fast.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator.common.errors import MissingSetting

if TYPE_CHECKING:
    from orchestrator.common.stack_arns import Location, StackArn
    from orchestrator.events.delivery.addresses import AddressRules
    from orchestrator.releases.states import PromotionMode
    from orchestrator.tenants.names import Names
    from orchestrator.tenants.records import Operation


@dataclass(frozen=True)
class Settings:
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def _required(self, name: str) -> str:
        value = self.environment.get(name)
        if not value:
            raise MissingSetting(f"The environment variable {name} is not set. Deploy the control plane again.")
        return value

    @property
    def table(self) -> str:
        return self._required("BERTH_TABLE")

    @property
    def response_url_prefix(self) -> str | None:
        """The beginning of the addresses at which an emulator receives responses of custom resources."""
        return self.environment.get("BERTH_RESPONSE_URL_PREFIX") or None

    @property
    def names(self) -> Names:
        """The names of the control plane that the function belongs to."""
        from orchestrator.tenants.names import Names

        prefixes = self.environment.get("BERTH_LEGACY_STACK_PREFIXES") or ""
        return Names.parse(self.control_plane, prefixes.split(",") if prefixes else ())

    @property
    def control_plane(self) -> str:
        """The name of the control plane that the function belongs to."""
        return self._required("BERTH_NAME")

    @property
    def version(self) -> str:
        """The version of Berth."""
        return self._required("BERTH_VERSION")

    @property
    def template_version(self) -> str:
        """The version of the tenants' template: the release that the deployment has published."""
        return self._required("BERTH_TEMPLATE_VERSION")

    @property
    def promotion(self) -> PromotionMode:
        """When a release becomes current by itself. Functions that choose no release do not have it."""
        from orchestrator.releases.states import PromotionMode

        return PromotionMode(self.environment.get("BERTH_PROMOTION") or PromotionMode.ON_DEPLOY)

    @property
    def default_tier(self) -> str:
        """The tier in which tenants are created if nobody names one. Functions that create none do not have it."""
        from orchestrator.common.tiers import STANDARD

        return self.environment.get("BERTH_DEFAULT_TIER") or STANDARD

    def machine(self, operation: Operation) -> str:
        return self._required(f"BERTH_{operation}_MACHINE")

    @property
    def location(self) -> Location:
        """The partition, region and account of Berth, and of all tenants' stacks and queues."""
        from orchestrator.common.stack_arns import Location

        return Location.parse(self._required("BERTH_LOCATION"))

    @property
    def stack_id(self) -> StackArn:
        """The id of the control plane's own stack."""
        from orchestrator.common.stack_arns import StackArn

        return StackArn.parse(self._required("BERTH_STACK_ID"))

    @property
    def linger(self) -> timedelta:
        """The time for which a function may keep running after its execution was aborted or timed out."""
        return timedelta(seconds=int(self._required("BERTH_LINGER_SECONDS")))

    @property
    def retry_after_seconds(self) -> int:
        """How long callers of getQueue wait before they ask again for a queue that is being created."""
        return int(self._required("BERTH_RETRY_AFTER_SECONDS"))

    @property
    def empty_for(self) -> timedelta:
        """The time for which a queue has to look empty before a delete treats it as empty."""
        return timedelta(seconds=int(self._required("BERTH_EMPTY_FOR_SECONDS")))

    @property
    def stack_events(self) -> bool:
        """True if CloudFormation sends events about tenants' stacks. An emulator may send none."""
        return self._required("BERTH_STACK_EVENTS") == "true"

    @property
    def tenant_queue_machine(self) -> str:
        return self._required("BERTH_TENANT_QUEUE_MACHINE")

    @property
    def rollout_machine(self) -> str:
        return self._required("BERTH_ROLLOUT_MACHINE")

    @property
    def rollout_concurrency(self) -> int:
        """The maximum number of tenants that one rollout upgrades at the same time."""
        return int(self._required("BERTH_ROLLOUT_CONCURRENCY"))

    @property
    def max_tenants(self) -> int:
        """The maximum number of tenants."""
        return int(self._required("BERTH_MAX_TENANTS"))

    @property
    def creates_per_minute(self) -> int:
        """The maximum number of creates that each caller may start per minute; 0 for no limit."""
        return int(self._required("BERTH_CREATES_PER_MINUTE"))

    @property
    def warm_pool(self) -> Mapping[str, int]:
        """The number of stacks that are kept ready for new tenants, by tier. Empty if none are."""
        sizes = (each.split("=") for each in self.environment.get("BERTH_WARM_POOL", "").split(",") if each)
        return {tier: int(size) for tier, size in sizes}

    @property
    def create_on_get_queue(self) -> bool:
        """True if getQueue creates an unknown tenant."""
        return self._required("BERTH_CREATE_ON_GET_QUEUE") == "true"

    @property
    def queue_access_role(self) -> str | None:
        """The role that is assumed for temporary credentials. Without it, Berth issues none."""
        return self.environment.get("BERTH_QUEUE_ACCESS_ROLE") or None

    @property
    def event_access_role(self) -> str | None:
        """The role that is assumed for temporary credentials for events. Without it, Berth issues none."""
        return self.environment.get("BERTH_EVENT_ACCESS_ROLE") or None

    @property
    def events_table_arn(self) -> str:
        return self._required("BERTH_EVENTS_TABLE_ARN")

    @property
    def credentials_seconds(self) -> int:
        return int(self._required("BERTH_CREDENTIALS_SECONDS"))

    @property
    def api_proof_digest(self) -> str | None:
        """SHA-256 of the proof that API Gateway sends with every request. Without it, all callers are refused."""
        return self.environment.get("BERTH_API_PROOF_DIGEST") or None

    @property
    def stack_role(self) -> str:
        return self._required("BERTH_STACK_ROLE")

    @property
    def metadata_service_token(self) -> str:
        return self._required("BERTH_METADATA_SERVICE_TOKEN")

    @property
    def kms_key(self) -> str | None:
        """The KMS key of tenants' queues. Without it, SQS encrypts them with its own key."""
        return self.environment.get("BERTH_KMS_KEY") or None

    @property
    def former_kms_keys(self) -> tuple[str, ...]:
        """The KMS keys used before, with which some queues, or messages in them, may still be encrypted."""
        return tuple(filter(None, self.environment.get("BERTH_FORMER_KMS_KEYS", "").split(",")))

    @property
    def reconcile_function(self) -> str:
        return self._required("BERTH_RECONCILE_FUNCTION")

    @property
    def dead_letter_queues(self) -> Mapping[str, str]:
        """The URLs of the control plane's own dead-letter queues, by the names of their sources."""
        queues: Mapping[str, str] = json.loads(self._required("BERTH_DEAD_LETTER_QUEUES"))
        return queues

    @property
    def events_table(self) -> str:
        return self._required("BERTH_EVENTS_TABLE")

    @property
    def events_environment(self) -> str:
        """The environment that is part of every API key, such as ``live``."""
        return self._required("BERTH_EVENTS_ENVIRONMENT")

    @property
    def contents_bucket(self) -> str:
        """The bucket of the contents that are too large for an event's row."""
        return self._required("BERTH_CONTENTS_BUCKET")

    @property
    def address_rules(self) -> AddressRules:
        """The addresses to which events may be sent."""
        from orchestrator.events.delivery.addresses import AddressRules

        hosts = self.environment.get("BERTH_OWN_HOSTS", "").split(",")
        local = self.environment.get("BERTH_LOOPBACK_DESTINATIONS") == "true"
        return AddressRules(plain_http=local, loopback=local, own_hosts=frozenset(filter(None, hosts)))

    @property
    def mail_from(self) -> str | None:
        """The address that mail with events comes from. Without it, no mail is sent."""
        return self.environment.get("BERTH_EVENTS_MAIL_FROM") or None

    @property
    def mail_configuration_set(self) -> str | None:
        """The configuration set of SES with which mail is sent."""
        return self.environment.get("BERTH_MAIL_CONFIGURATION_SET") or None

    @property
    def purge_machine(self) -> str:
        return self._required("BERTH_PURGE_MACHINE")

    @property
    def purge_settle(self) -> timedelta:
        """The time for which nothing of a deleted tenant must have been found before its purge is finished."""
        return timedelta(seconds=int(self._required("BERTH_PURGE_SETTLE_SECONDS")))

    @property
    def parked_records_queue(self) -> str:
        """The URL of the queue of a stream's records that the function cannot use."""
        return self._required("BERTH_PARKED_RECORDS_QUEUE")

    @property
    def own_events_bus(self) -> str:
        """The EventBridge bus of Berth's own events."""
        return self._required("BERTH_OWN_EVENTS_BUS")

    @property
    def publish_events_function(self) -> str:
        """The function that publishes Berth's own events."""
        return self._required("BERTH_PUBLISH_EVENTS_FUNCTION")

    @property
    def first_queue(self) -> str:
        """The URL of the queue of first tries of healthy connections."""
        return self._required("BERTH_FIRST_QUEUE")

    @property
    def later_queue(self) -> str:
        """The URL of the queue of all other tries."""
        return self._required("BERTH_LATER_QUEUE")

    @property
    def secrets_key(self) -> str:
        """The KMS key that encrypts the secrets of tenants' sources and connections."""
        return self._required("BERTH_SECRETS_KEY")

    @property
    def api(self) -> str:
        """The id of the API."""
        return self._required("BERTH_API")

    @property
    def api_stage(self) -> str:
        return self._required("BERTH_API_STAGE")

    @property
    def release_bucket(self) -> str:
        return self._required("BERTH_RELEASE_BUCKET")

    @property
    def source_bucket(self) -> str | None:
        """The bucket to which a deployment uploads the templates that it publishes. Only its own function has it."""
        return self.environment.get("BERTH_SOURCE_BUCKET") or None

    @property
    def stack_policies(self) -> tuple[str, ...]:
        """The ARNs of the managed policies that the operator has named for tenants' stacks."""
        return tuple(filter(None, self.environment.get("BERTH_STACK_POLICIES", "").split(",")))
