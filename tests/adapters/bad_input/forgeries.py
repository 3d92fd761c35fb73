"""Events that look genuine and are not: whoever may invoke a function directly can send it any event.

Each is well formed, so that nothing but what it says gives it away. Everything is made from one random generator, so a
seed is as good as the event itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from orchestrator.common.callers import digest_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.records import Attempt, Operation, Queue, Run
from orchestrator.tenants.stack_resources import StackResource
from tests.adapters.bad_input import test_api, test_custom_resources
from tests.adapters.bad_input.fleet import (
    A_WHILE_AGO,
    AT_WORK,
    AWAITING,
    BILLING,
    CHANGING,
    DEPLOYED,
    LOST,
    NEIGHBOUR,
    OWNERS,
    RECONCILED,
    ROLLOUT_TOKEN,
    SERVED,
    STACKS,
    TASK_TOKEN,
    TENANTS,
    own_queue,
    squatters_queue,
)
from tests.adapters.bad_input.inputs import JsonText, sent
from tests.adapters.bad_input.world import OWN_STACK, PROOF, RECONCILIATION, RESPONSE_URL, ROLLOUT, TEMPLATE
from tests.fakes import NEXT_VERSION, NOON, VERSION, execution_arn

Forge = Callable[[Random], Any]
Event = dict[str, Any]

ATTACKER = "666666666666"
"""The attacker's own account."""


# Forged facts about stacks, queues and executions

_LOOK_ALIKES: tuple[Callable[[str], str], ...] = (
    lambda arn: arn.replace(":000000000000:", f":{ATTACKER}:"),
    lambda arn: arn.replace(":eu-west-1:", ":us-east-1:"),
    lambda arn: arn.replace("arn:aws:", "arn:aws-cn:"),
    lambda arn: arn.replace("berth-tenant-", "my-berth-tenant-"),
    lambda arn: arn.replace("berth-tenant-", "berth-tenants-"),
    lambda arn: arn.replace("berth-tenant-", "Berth-Tenant-"),
    lambda arn: "-evil/".join(arn.rsplit("/", 1)),
    lambda arn: f"{arn}0",
    lambda arn: f"{arn}/evil",
    lambda arn: f"{arn}:evil",
    lambda arn: f" {arn}",
    lambda arn: arn.rpartition("/")[0] + "/another-uuid",
    lambda arn: arn.split("/")[1] if "/" in arn else arn.rpartition(":")[2],
    lambda arn: arn.replace(":create-tenant:", ":evil-machine:"),
    lambda arn: arn.replace(":execution:", ":express:"),
    lambda arn: arn.upper(),
)


def _stack_id(rng: Random, tenant: TenantId) -> str:
    """A stack that bears the tenant's name, another's, or one that only looks like it."""
    chance = rng.random()
    if chance < 0.35:
        return rng.choice(STACKS[tenant])
    other = rng.choice(STACKS[rng.choice(TENANTS)])
    return other if chance < 0.5 else rng.choice(_LOOK_ALIKES)(rng.choice([*STACKS[tenant], other]))


def _queue(rng: Random, tenant: TenantId) -> Queue:
    """The tenant's own queue, another tenant's, a squatter's, or an attacker's that only looks like it."""
    own = own_queue(tenant)
    known = (own, own, own_queue(rng.choice(TENANTS)), squatters_queue(tenant))
    made_up = (
        lambda queue: Queue(*(each.replace("000000000000", ATTACKER) for each in (queue.arn, queue.url))),
        lambda queue: Queue(*(each.replace("eu-west-1", "us-east-1") for each in (queue.arn, queue.url))),
        lambda queue: Queue(*(f"{each}-evil" for each in (queue.arn, queue.url))),
        lambda queue: Queue(*(each.replace("berth-tenant-", "berth-tenants-") for each in (queue.arn, queue.url))),
        lambda queue: Queue(queue.arn, queue.url.replace("https:", "http:")),
        lambda queue: Queue(queue.arn, queue.url.replace("sqs.eu-west-1.amazonaws.com", "evil.example")),
        lambda queue: Queue(queue.arn, queue.url.replace("https://", f"https://evil.example/{ATTACKER}?")),
        lambda queue: Queue(queue.arn, own_queue(rng.choice(TENANTS)).url),
        lambda queue: Queue(queue.arn.replace("-Inbound-", "-DeadLetters-"), queue.url),
    )
    queue = rng.choice(known)
    return queue if rng.random() < 0.35 else rng.choice(made_up)(queue)


def _execution_id(rng: Random, tenant: TenantId, attempt: str) -> str:
    """Mostly that of no execution which holds the tenant's lock."""
    holder = OWNERS.holders.get(tenant)
    others = [*OWNERS.holders.values(), *OWNERS.ended, OWNERS.waiting]
    chance = rng.random()
    if holder and chance < 0.35:
        return holder.execution
    if chance < 0.5:
        return execution_arn(attempt)  # As it would be called, had somebody started it.
    if chance < 0.7:
        return rng.choice(others).execution
    if chance < 0.75:
        return execution_arn(f"rollout-{ROLLOUT}-1")
    return rng.choice(_LOOK_ALIKES)((holder or rng.choice(others)).execution)


def _request(rng: Random) -> Event:
    """Whatever somebody might like to have asked for, in somebody else's name."""
    specs: Event = {
        "by": "arn:aws:sts::000000000000:assumed-role/operator/ada",
        "explicit": True,
        "labels": {"plan": "stolen"},
        "pin": NEXT_VERSION,
        "version": VERSION,
        "allowDowngrade": True,
        "allowReplacement": True,
        "force": True,
        "drainSeconds": 600,
        "own": True,
        "resource": {"stackId": str(BILLING.stack), "logicalId": BILLING.logical_id},
        "askedAt": rng.choice((NOON, A_WHILE_AGO)).isoformat(),
        "reason": "Ticket 4711",
    }
    return {name: specs[name] for name in rng.sample(sorted(specs), rng.randrange(len(specs)))}


def _version(rng: Random) -> str:
    return rng.choice((VERSION, NEXT_VERSION, NEXT_VERSION, "0.3.0"))


# The states of tenants' machines


def _genuine_input(run: Run) -> Event:
    return {**machine_input(run.attempt, run.request)}


def _execution(rng: Random) -> Event:
    """The fields by which a machine names its execution in the payload of each state."""
    tenant = rng.choice((*TENANTS, *OWNERS.holders))
    run = OWNERS.holders.get(tenant)
    if run is None or rng.random() < 0.5:
        run = rng.choice([each for each in (*OWNERS.ended, OWNERS.waiting) if each.tenant == tenant] or [None])
    if run is not None and rng.random() < 0.4:
        given = _genuine_input(run)
    else:
        given = {
            "tenantId": tenant.value,
            "operation": rng.choice(list(Operation)).value,
            "version": _version(rng),
            "attempt": rng.choice((1, 1, 2, 3, 99_999)),
            "request": _request(rng),
        }
    attempt = Attempt(tenant, Operation(given["operation"]), given["version"], given["attempt"])
    return {
        "Id": _execution_id(rng, tenant, attempt.name),
        "StartTime": rng.choice((NOON, NOON, A_WHILE_AGO)).isoformat(),
        "Input": given,
    }


def _step(**more: Callable[[Random, TenantId], object]) -> Forge:
    """A state's event, with what a state before it is said to have found."""

    def forge(rng: Random) -> Event:
        execution = _execution(rng)
        tenant = TenantId.parse(execution["Input"]["tenantId"])
        results = {name: said(rng, tenant) for name, said in more.items()}
        # An operation that is not the machine's is refused, so most forgeries name that of their input.
        operation = execution["Input"]["operation"] if rng.random() < 0.9 else rng.choice(list(Operation)).value
        found = {name: each for name, each in results.items() if each is not None}
        return {"execution": execution, "operation": operation, **found}

    return forge


def _inspected(rng: Random, tenant: TenantId) -> Event:
    if rng.random() < 0.3:
        return {"outcome": "gone"}
    queue = own_queue(tenant) if rng.random() < 0.4 else _queue(rng, tenant)
    stack_id = rng.choice(STACKS[tenant]) if rng.random() < 0.6 else _stack_id(rng, tenant)
    return {
        "outcome": "done",
        "stackId": stack_id,
        "queue": {"arn": queue.arn, "url": queue.url},
        "version": _version(rng),
        "changedAt": None,
    }


def _failure(rng: Random, tenant: TenantId) -> Event:
    if rng.random() < 0.4:
        return {"Error": "States.TaskFailed", "Cause": '{"errorType": "Throttled", "errorMessage": "Rate exceeded"}'}
    return {"outcome": "failed", "reason": "It broke.", "failedStack": rng.choice((None, _stack_id(rng, tenant)))}


def _moment(rng: Random, _tenant: TenantId) -> str | None:
    return rng.choice((None, NOON.isoformat(), A_WHILE_AGO.isoformat()))


def _token(rng: Random, tenant: TenantId) -> str:
    return rng.choice(("an-attackers-token", f"{TASK_TOKEN} of {tenant}", TASK_TOKEN, ROLLOUT_TOKEN))


# Events that come by themselves


def _stack_event(rng: Random) -> Event:
    return {
        "version": "0",
        "source": rng.choice(("aws.cloudformation", "evil")),
        "account": rng.choice(("000000000000", ATTACKER)),
        "region": rng.choice(("eu-west-1", "us-east-1")),
        "detail-type": "CloudFormation Stack Status Change",
        "detail": {
            "stack-id": _stack_id(rng, rng.choice(TENANTS)),
            "client-request-token": rng.choice((None, f"update-{rng.choice(TENANTS).slug}-1-0-0-1-update")),
            "status-details": {
                "status": rng.choice(("CREATE_COMPLETE", "DELETE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"))
            },
        },
    }


def _ended(rng: Random) -> Event:
    execution = _execution(rng)
    if rng.random() < 0.2:
        execution["Id"] = next(run.execution for run in OWNERS.ended if run.tenant == LOST)
    return {
        "source": rng.choice(("aws.states", "evil")),
        "account": rng.choice(("000000000000", ATTACKER)),
        "region": rng.choice(("eu-west-1", "us-east-1")),
        "detail-type": "Step Functions Execution Status Change",
        "detail": {
            "executionArn": execution["Id"],
            "status": rng.choice(("ABORTED", "TIMED_OUT", "FAILED", "SUCCEEDED")),
            "startDate": int(rng.choice((NOON, A_WHILE_AGO)).timestamp() * 1_000),
            "input": JsonText(execution["Input"]),
        },
    }


def _batch(rng: Random) -> Event:
    """As SQS hands them over."""
    bodies = [JsonText(_ended(rng)) for _ in range(rng.choice((1, 1, 2, 5)))]
    return {"Records": [{"messageId": str(number), "body": body} for number, body in enumerate(bodies)]}


def _reconcile(rng: Random) -> Event:
    ids = ("settling", "survey", RECONCILIATION, RECONCILED, ROLLOUT, "20261116-130000-ffff")
    return {"reconciliationId": rng.choice(ids), "spec": {"repair": True}, "by": "ada", "dryRun": False}


# The API


def _proofs(rng: Random) -> Event:
    """A wrong proof in the place of API Gateway's, or elsewhere."""
    digest = digest_of(PROOF)
    guesses: tuple[object, ...] = (
        *("", "guessed", PROOF[:-1], f"{PROOF} ", PROOF.upper(), digest, digest_of(digest), f"sha256:{digest}"),
        *(None, True, [PROOF], {"proof": PROOF}, 0),
    )
    places: tuple[Callable[[], Event], ...] = (
        dict,
        lambda: {"stageVariables": None},
        lambda: {"stageVariables": {}},
        lambda: {"stageVariables": {"proof": rng.choice(guesses)}},
        lambda: {"stageVariables": {"proof": rng.choice(guesses)}},
        lambda: {"stageVariables": {"Proof": PROOF}},
        lambda: {"stageVariables": [PROOF]},
        lambda: {"stageVariables": JsonText(proof=PROOF)},
        lambda: {"headers": {"proof": PROOF, "x-berth-proof": PROOF}},
        lambda: {"multiValueHeaders": {"stageVariables": [PROOF]}},
        lambda: {"proof": PROOF},
        lambda: {"requestContext": {"stageVariables": {"proof": PROOF}, "authorizer": {"iam": {"userArn": "ada"}}}},
        lambda: {"requestContext": {"authorizer": {"lambda": {"proof": PROOF}, "iam": {"userArn": "ada"}}}},
    )
    return rng.choice(places)()


def _by_api(routes: tuple[str, ...]) -> Forge:
    callers = (
        "arn:aws:sts::000000000000:assumed-role/operator/ada",
        "arn:aws:iam::000000000000:root",
        "arn:aws:iam::000000000000:role/platform",
        str(BILLING),
        "berth reconcile",
        "deployment",
    )

    def forge(rng: Random) -> Any:
        event = test_api.a_request(rng.choice(routes))
        del event["stageVariables"]
        event["requestContext"] = {"authorizer": {"iam": {"userArn": rng.choice(callers)}}}
        if "tenantId" in event.get("pathParameters", {}):
            event["pathParameters"] = {"tenantId": rng.choice(TENANTS).value}
        return sent(rng, event | _proofs(rng))

    return forge


def _get_queue(rng: Random) -> Any:
    if rng.random() < 0.6:
        return _by_api(test_api.QUEUE_ROUTES)(rng)
    asked: Event = {"tenantId": rng.choice(TENANTS).value}
    more: tuple[Event, ...] = ({}, {"by": "ada"}, {"explicit": True}, {"credentials": "send"}, _proofs(rng))
    return sent(rng, asked | rng.choice(more))


# Custom resources

_ELSEWHERE = (
    "https://evil.example/answer",
    "http://169.254.169.254/latest/meta-data/",
    RESPONSE_URL.replace("https:", "http:"),
    RESPONSE_URL.replace(".amazonaws.com/", ".amazonaws.com.evil.example/"),
    RESPONSE_URL.replace("https://", "https://evil.example/"),
    RESPONSE_URL.replace("https://", "https://evil.example?"),
    RESPONSE_URL.replace("https://", "https://user@evil.example/"),
    RESPONSE_URL.replace("cloudformation-", "my-cloudformation-"),
    RESPONSE_URL.replace("-euwest1", "-useast1"),
    RESPONSE_URL.replace("-euwest1", "-euwest1-evil"),
    RESPONSE_URL.replace(".amazonaws.com/", ".amazonaws.com:8443/"),
    RESPONSE_URL.replace(".amazonaws.com/", ".amazonaws.com.cn/"),
    RESPONSE_URL.replace(".s3.eu-west-1.", ".s3-accelerate."),
    "https://cloudformation-custom-resource-response-euwest1.evil.s3.amazonaws.com/answer",
)


def _asked(rng: Random, properties: Event, **more: object) -> Event:
    """An event as CloudFormation would send it. Its response goes to CloudFormation, or elsewhere."""
    event = test_custom_resources.a_request(properties, rng.choice(("Create", "Update", "Delete")))
    event["RequestId"] = hashlib.sha256(str(rng.random()).encode()).hexdigest()[:36]
    event["ResponseURL"] = RESPONSE_URL if rng.random() < 0.7 else rng.choice(_ELSEWHERE)
    return event | more


def _tenant_metadata(rng: Random) -> Event:
    tenant = rng.choice(TENANTS)
    queue, stack_id = _queue(rng, tenant), _stack_id(rng, tenant)
    properties = {"TenantId": tenant.value, "InboundQueueArn": queue.arn, "InboundQueueUrl": queue.url}
    return _asked(rng, properties, StackId=stack_id, PhysicalResourceId="tenant-metadata")


_TEAMS = (BILLING, BILLING, AT_WORK, AT_WORK, NEIGHBOUR, StackResource(AT_WORK.stack, "Another"))


def _tenant_queue(rng: Random) -> Event:
    """A resource asks for a tenant, in whose name it may not, or while nobody is at that resource.

    While CloudFormation is at a resource, an event about that resource's own tenant, or about one that is nobody's,
    cannot be told from a genuine one (``docs/security.md``). Those are not made here.
    """
    resource = rng.choice(_TEAMS)
    tenant = rng.choice(TENANTS)
    properties: Event = {"TenantId": tenant.value}
    more: Event = {
        "Labels": {"plan": "stolen"},
        "Version": rng.choice((VERSION, NEXT_VERSION)),
        "OnDelete": rng.choice(("delete", "delete", "retain")),
    }
    properties |= {name: more[name] for name in rng.sample(sorted(more), rng.randrange(4))}
    event = _asked(
        rng,
        properties,
        StackId=str(resource.stack),
        LogicalResourceId=resource.logical_id,
        PhysicalResourceId=rng.choice((CHANGING, tenant, rng.choice(TENANTS))).value,
        OldResourceProperties=rng.choice(({}, properties, {"TenantId": CHANGING.value, "Version": VERSION})),
    )
    if resource == AT_WORK and event["RequestType"] == "Update":
        somebody_elses = [each for each in SERVED if each != CHANGING]
        event["ResourceProperties"]["TenantId"] = rng.choice(somebody_elses).value
    elif rng.random() < 0.3:
        event["StackId"] = rng.choice(_LOOK_ALIKES)(event["StackId"])
    return event


def _settle(rng: Random) -> Event:
    since = rng.choice((NOON, A_WHILE_AGO))
    event: Event = {
        "execution": {
            "Id": _execution_id(rng, CHANGING, "tenant-queue-1"),
            "StartTime": since.isoformat(),
            "Input": {"event": _tenant_queue(rng)},
        },
        "confirmed": rng.random() < 0.5,
    }
    if rng.random() < 0.1:
        event["failure"] = {"Error": "States.Timeout", "Cause": "It took too long."}
    return event


def _deployed(rng: Random, properties: Event) -> Event:
    """In the name of the control plane's own deployment, or in another's."""
    stacks = (OWN_STACK, OWN_STACK, OWN_STACK, str(BILLING.stack), str(AT_WORK.stack))
    stack_id = rng.choice(stacks) if rng.random() < 0.7 else rng.choice(_LOOK_ALIKES)(OWN_STACK)
    name = rng.choice((*DEPLOYED, AT_WORK.logical_id, "Another"))
    return _asked(rng, properties, StackId=stack_id, LogicalResourceId=name, PhysicalResourceId="known")


def _release(rng: Random) -> Event:
    digest = hashlib.sha256(TEMPLATE).hexdigest()
    properties = {
        "Version": rng.choice((VERSION, NEXT_VERSION, "0.3.0", "9.9.9")),
        "Digest": rng.choice((digest, "0" * 64)),
        "SourceBucket": rng.choice(("assets", "evil-bucket")),
        "SourceKey": "template.json",
    }
    return _deployed(rng, properties)


# Rollouts


def _rollout_id(rng: Random) -> str:
    return rng.choice((ROLLOUT, AWAITING, "20261116-120000-ffff"))


def _rollout_step(rng: Random) -> Event:
    rollout, attempt = _rollout_id(rng), rng.choice((1, 1, 2, 9_999))
    execution = rng.choice(
        (
            execution_arn(f"rollout-{rollout}-{attempt}"),
            execution_arn(f"rollout-{ROLLOUT}-1"),
            rng.choice(list(OWNERS.holders.values())).execution,
            rng.choice(_LOOK_ALIKES)(execution_arn(f"rollout-{rollout}-1")),
        )
    )
    event: Event = {"execution": {"Id": execution, "Input": {"rolloutId": rollout, "attempt": attempt}}}
    if rng.random() < 0.3:
        event["failure"] = {"Error": "States.TaskFailed", "Cause": "It broke."}
    return event


def _await_operator(rng: Random) -> Event:
    event = _rollout_step(rng)
    event.pop("failure", None)
    return event | {"taskToken": _token(rng, CHANGING)}


def _turn(rng: Random) -> Event:
    event: Event = {
        "rolloutId": _rollout_id(rng),
        "stage": rng.choice((1, 1, 2)),
        "tenantId": rng.choice(TENANTS).value,
        "version": _version(rng),
        "execution": rng.choice(("child", "another-child", execution_arn(f"rollout-{ROLLOUT}-1"))),
    }
    if rng.random() < 0.3:
        event["failure"] = {"Error": "States.TaskFailed", "Cause": "It broke."}
    return event


FORGERIES: Mapping[str, Forge] = {
    "get_queue": _get_queue,
    "operators": _by_api(tuple(route for route in test_api.ROUTES if route not in test_api.QUEUE_ROUTES)),
    "begin": _step(),
    "start_stack": _step(emptySince=_moment, taskToken=_token),
    "await_admission": _step(taskToken=_token),
    "await_stack": _step(taskToken=_token),
    "inspect_stack": _step(),
    "finish": _step(stack=_inspected),
    "record_failure": _step(failure=_failure),
    "stack_event": _stack_event,
    "close_execution": lambda rng: sent(rng, _batch(rng)),
    "reconcile": _reconcile,
    "tenant_metadata": _tenant_metadata,
    "tenant_queue": _tenant_queue,
    "settle_tenant_queue": _settle,
    "publish_release": _release,
    "start_rollout": lambda rng: _deployed(rng, {"Version": _version(rng)}),
    "api_proof": lambda rng: _deployed(rng, {"Generation": "1"}),
    "advance_rollout": _rollout_step,
    "await_operator": _await_operator,
    "admit_tenant": _turn,
    "record_outcome": _turn,
    "review_tenant": _turn,
}
"""How an event is forged for each function of the control plane."""
