"""Planted bugs in the tenants' template, in both stacks, and in the check of operators' templates."""

from __future__ import annotations

from typing import Any

from tests.planted.bugs import Json, PlantedBug, in_function, in_stack, in_tenants_template, resources
from tests.simulation.planting import Bug

TENANTS = "stacks/test_tenant_template.py"
CONTROL_PLANE = "stacks/test_control_plane.py"
EVENT_PLANE = "stacks/test_event_plane.py"
CHECKS = "unit/test_template_checks.py"
FINDINGS = "orchestrator.releases.checking._findings"


def without_statement(sid: str) -> Bug:
    def change(template: Json) -> None:
        for policy in resources(template, "AWS::SQS::QueuePolicy").values():
            document = policy["Properties"]["PolicyDocument"]
            document["Statement"] = [each for each in document["Statement"] if each.get("Sid") != sid]

    return in_tenants_template(change)


def of_tenants(resource: str, **properties: Any) -> Bug:
    return in_tenants_template(lambda template: template["Resources"][resource]["Properties"].update(properties))


def of_all(kind: str, stack: str = "Berth", **properties: Any) -> Bug:
    """Give all resources of a type other properties."""

    def change(template: Json) -> None:
        for each in resources(template, kind).values():
            each["Properties"].update(properties)

    return in_stack(change, stack)


def deleted_with_the_stack(kind: str, stack: str = "Berth") -> Bug:
    def change(template: Json) -> None:
        for each in resources(template, kind).values():
            each.pop("DeletionPolicy", None)

    return in_stack(change, stack)


def _swap_the_outputs(template: Json) -> None:
    template["Outputs"]["InboundQueueUrl"]["Value"] = template["Outputs"]["DeadLetterQueueUrl"]["Value"]


def without_rule(call: str) -> Bug:
    return in_function(FINDINGS, f"    yield from {call}\n", "")


BUGS = {
    "a tenant's queue takes plain HTTP": PlantedBug(
        "Messages of tenants can be read on the network.",
        without_statement("DenyWithoutTls"),
        f"{TENANTS}::test_queues_accept_only_tls[InboundQueue]",
    ),
    "a tenant's queue is open to other accounts": PlantedBug(
        "A policy of another account can allow its users to send to the queue.",
        without_statement("DenyOtherAccounts"),
        f"{TENANTS}::test_queues_are_closed_to_other_accounts_but_not_to_aws_services_that_deliver[InboundQueue]",
    ),
    "a tenant's queue is not encrypted": PlantedBug(
        "Messages of tenants are stored in plain text.",
        of_tenants("InboundQueue", SqsManagedSseEnabled=False),
        f"{TENANTS}::test_queues_are_encrypted_tagged_and_named_by_cloudformation[InboundQueue]",
    ),
    "a tenant's queue has a fixed name": PlantedBug(
        "A second tenant cannot be created, and a tenant cannot be created again for a minute.",
        of_tenants("InboundQueue", QueueName="inbound"),
        f"{TENANTS}::test_queues_are_encrypted_tagged_and_named_by_cloudformation[InboundQueue]",
    ),
    "the output has the other queue": PlantedBug(
        "Platforms that read outputs of stacks send to the dead-letter queue.",
        in_tenants_template(_swap_the_outputs),
        f"{TENANTS}::test_the_outputs_are_the_queues_and_the_version",
    ),
    "the metadata has the other queue": PlantedBug(
        "getQueue answers with the dead-letter queue.",
        of_tenants("TenantMetadata", InboundQueueUrl={"Ref": "DeadLetterQueue"}),
        f"{TENANTS}::test_the_custom_resource_has_what_the_metadata_needs",
    ),
    "dead letters expire first": PlantedBug(
        "A message that nobody could handle is lost after a minute.",
        of_tenants("DeadLetterQueue", MessageRetentionPeriod=60),
        f"{TENANTS}::test_dead_letters_are_kept_longer_than_messages",
    ),
    "the table goes with its stack": PlantedBug(
        "Whoever deletes the stack deletes all records of all tenants.",
        deleted_with_the_stack("AWS::DynamoDB::Table"),
        f"{CONTROL_PLANE}::test_the_table_is_retained_protected_and_backed_up",
    ),
    "the table of events goes with its stack": PlantedBug(
        "Whoever deletes the event plane deletes accepted events.",
        deleted_with_the_stack("AWS::DynamoDB::Table", "BerthEvents"),
        f"{EVENT_PLANE}::test_the_table_is_retained_protected_backed_up_and_expires_rows",
    ),
    "releases go with their declaration": PlantedBug(
        "A release that is no longer declared is deleted, although tenants run on it.",
        deleted_with_the_stack("Custom::Release"),
        f"{CONTROL_PLANE}::test_a_published_release_is_retained",
    ),
    "the bucket of releases may be public": PlantedBug(
        "A policy can open the tenants' templates to everybody.",
        of_all("AWS::S3::Bucket", PublicAccessBlockConfiguration={}),
        f"{CONTROL_PLANE}::test_published_templates_are_kept_and_private",
    ),
    "queues of the control plane are not encrypted": PlantedBug(
        "Messages about tenants are stored in plain text.",
        of_all("AWS::SQS::Queue", SqsManagedSseEnabled=False),
        f"{CONTROL_PLANE}::test_every_queue_is_encrypted_and_accepts_only_tls[control_plane]",
    ),
    "the key of secrets is not rotated": PlantedBug(
        "Tenants' secrets are under the same key for ever.",
        of_all("AWS::KMS::Key", "BerthEvents", EnableKeyRotation=False),
        f"{EVENT_PLANE}::test_secrets_have_a_key_of_the_stack_that_is_rotated_and_kept",
    ),
    "policies of templates are not checked": PlantedBug(
        "An operator's template can open a tenant's queue to the world.",
        without_rule("policy_findings(resources)"),
        f"{CHECKS}::test_a_policy_that_admits_others_is_refused",
    ),
    "names of others are not checked": PlantedBug(
        "A template can refer to the queue of another tenant.",
        without_rule("others_findings(template, surroundings.reserved)"),
        f"{CHECKS}::test_names_of_berth_and_of_other_tenants_are_refused",
    ),
    "fixed names are not checked": PlantedBug(
        "A template is published with which only one tenant can be created.",
        without_rule("name_findings(resources)"),
        f"{CHECKS}::test_a_fixed_name_is_refused_before_a_second_tenant_meets_it",
    ),
    "kept queues are not checked": PlantedBug(
        "An update to a template replaces the queue, and its messages are lost.",
        without_rule("kept_findings(template, surroundings.earlier)"),
        f"{CHECKS}::test_a_queue_of_an_earlier_release_must_be_kept_under_its_logical_id",
    ),
    "types of templates are not checked": PlantedBug(
        "A template runs the code of others, or changes permissions.",
        without_rule("_types(resources, surroundings.permissions)"),
        f"{CHECKS}::test_types_that_run_code_of_others_or_change_permissions_are_refused",
    ),
    "references of templates are not checked": PlantedBug(
        "A template reads a secret of the account by a dynamic reference.",
        without_rule("reference_findings(template)"),
        f"{CHECKS}::test_values_from_outside_of_the_template_are_refused_wherever_they_are",
    ),
    "outputs of templates are not checked": PlantedBug(
        "A template without the queue's address is published.",
        without_rule("_outputs(template, surroundings.version)"),
        f"{CHECKS}::test_every_broken_rule_is_found_with_advice[no output of the queue]",
    ),
}
