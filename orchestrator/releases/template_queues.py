"""The queues of a template: messages stay within the stack, and survive the move from an earlier release."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.releases import template_contract as contract
from orchestrator.releases.findings import Finding, Rule
from orchestrator.releases.template_values import entries, mapping, reference

_TENANT_TAG = {"Key": contract.TENANT_TAG, "Value": {"Ref": contract.TENANT_PARAMETER}}


@dataclass(frozen=True, slots=True)
class EarlierRelease:
    """A release from which tenants would be moved to the template."""

    version: str
    template: Mapping[str, Any]

    @classmethod
    def parse(cls, version: str, template: str) -> EarlierRelease:
        return cls(version, mapping(json.loads(template)))


def queues_of(template: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The template's queues by logical id."""
    resources = mapping(template.get("Resources"))
    return {name: each for name, each in resources.items() if mapping(each).get("Type") == contract.QUEUE_TYPE}


def queue_findings(template: Mapping[str, Any]) -> Iterator[Finding]:
    """The tenant's queue is there, and no queue sends messages out of the stack."""
    queues = queues_of(template)
    inbound = queues.get(contract.INBOUND_QUEUE)
    place = f"Resources.{contract.INBOUND_QUEUE}"
    if inbound is None:
        yield Finding(
            Rule.QUEUES,
            place,
            f"The tenant's queue is missing: a resource {contract.INBOUND_QUEUE} of type {contract.QUEUE_TYPE}.",
            "Add it. getQueue answers with it.",
        )
    else:
        if "Condition" in inbound:
            yield Finding(Rule.QUEUES, f"{place}.Condition", "Every tenant has a queue.", "Remove the condition.")
        if mapping(inbound.get("Properties")).get("FifoQueue") not in (None, False, "false"):
            yield Finding(
                Rule.QUEUES,
                f"{place}.Properties.FifoQueue",
                "Platforms and the event plane send to a standard queue.",
                "Remove FifoQueue here. Another queue of the template may have it.",
            )
        if _TENANT_TAG not in entries(mapping(inbound.get("Properties")).get("Tags")):
            yield Finding(
                Rule.QUEUES,
                f"{place}.Properties.Tags",
                f"The tag {contract.TENANT_TAG} is missing. Temporary credentials work only for a queue that has it.",
                f"Add it: {json.dumps(_TENANT_TAG)}.",
            )
    for name, queue in queues.items():
        properties = mapping(queue.get("Properties"))
        yield from _redrive(f"Resources.{name}.Properties", properties, set(queues))


def _redrive(place: str, properties: Mapping[str, Any], queues: set[str]) -> Iterator[Finding]:
    redrive = properties.get("RedrivePolicy")
    if redrive is not None:
        target = reference(mapping(redrive).get("deadLetterTargetArn"))
        if target is None or target[0] not in queues or target[1] != "Arn":
            yield Finding(
                Rule.QUEUES,
                f"{place}.RedrivePolicy",
                "Its dead-letter queue is not a queue of this template: messages would leave the tenant.",
                'Write "deadLetterTargetArn": {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}.',
            )
    allowed = properties.get("RedriveAllowPolicy")
    if allowed is not None:
        sources = mapping(allowed).get("sourceQueueArns", [])
        inner = [reference(each) for each in sources] if isinstance(sources, list) else [None]
        if not isinstance(allowed, dict) or any(each is None or each[0] not in queues for each in inner):
            yield Finding(
                Rule.QUEUES,
                f"{place}.RedriveAllowPolicy",
                "It admits dead letters of queues outside of this template.",
                'Name queues of the template by {"Fn::GetAtt": ["...", "Arn"]}.',
            )


def kept_findings(template: Mapping[str, Any], earlier: Sequence[EarlierRelease]) -> Iterator[Finding]:
    """The queues of earlier releases, and their policies, are still there."""
    yield from _queues_kept(template, earlier)
    yield from _policies_kept(template, earlier)


def _queues_kept(template: Mapping[str, Any], earlier: Sequence[EarlierRelease]) -> Iterator[Finding]:
    """A queue under another logical id is another queue: CloudFormation removes the former one with its messages."""
    queues = queues_of(template)
    for release in earlier:
        for name, before in queues_of(release.template).items():
            place, after = f"Resources.{name}", queues.get(name)
            if after is None:
                yield Finding(
                    Rule.QUEUES_KEPT,
                    place,
                    f"Release {release.version} has this queue. An update would remove it with its messages.",
                    "Keep the queue and its logical id. If its messages may be lost: --allow-replacement",
                )
            elif _is_fifo(before) != _is_fifo(after):
                yield Finding(
                    Rule.QUEUES_KEPT,
                    f"{place}.Properties.FifoQueue",
                    f"It differs from release {release.version}. An update would replace the queue, and lose messages.",
                    "Keep FifoQueue as it is, and add another queue. If messages may be lost: --allow-replacement",
                )


def _policies_kept(template: Mapping[str, Any], earlier: Sequence[EarlierRelease]) -> Iterator[Finding]:
    """CloudFormation makes the new policy of a queue first, and deletes the former one last: then there is none."""
    policies = _queue_policies(template)
    for release in earlier:
        for name, queues in _queue_policies(release.template).items():
            others = sorted(other for other, each in policies.items() if each & queues and other != name)
            if name not in policies and others:
                yield Finding(
                    Rule.QUEUES_KEPT,
                    f"Resources.{others[0]}",
                    f"Release {release.version} has the policy of this queue as {name}. An update would make this one, "
                    f"then delete {name}, and leave the queue without a policy.",
                    f"Call it {name}.",
                )


def _queue_policies(template: Mapping[str, Any]) -> dict[str, set[str]]:
    """The logical ids of the queues that each policy is for, by the logical id of the policy."""
    found: dict[str, set[str]] = {}
    for name, each in mapping(template.get("Resources")).items():
        properties = mapping(mapping(each).get("Properties"))
        if mapping(each).get("Type") in (contract.QUEUE_POLICY_TYPE, contract.QUEUE_INLINE_POLICY_TYPE):
            named = [*entries(properties.get("Queues", [])), properties.get("Queue")]
            found[name] = {target[0] for target in map(reference, named) if target is not None}
    return found


def _is_fifo(queue: Mapping[str, Any]) -> bool:
    return mapping(queue.get("Properties")).get("FifoQueue") in (True, "true")
