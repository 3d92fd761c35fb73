"""One folder per capability, and one file per function: parse the event, call one use case, return its result.

| function                                                 | called by                                       |
|----------------------------------------------------------|-------------------------------------------------|
| api/get_queue                                            | platforms: over HTTP, or directly               |
| api/operators                                            | operators: over HTTP                            |
| api/api_proof, releases/publish_release,                 | Berth's own deployment                          |
| rollouts/start_rollout                                   |                                                 |
| tenants/begin, tenants/await_admission,                  | the state of that name in the tenants' machines |
| tenants/start_stack, tenants/await_stack,                |                                                 |
| tenants/inspect_stack,                                   |                                                 |
| tenants/finish, tenants/record_failure                   |                                                 |
| tenants/stack_event                                      | EventBridge, when a stack has settled           |
| tenants/tenant_metadata                                  | a tenant's stack, as a custom resource          |
| tenants/tenant_queue                                     | other teams' stacks, as a custom resource       |
| tenants/settle_tenant_queue                              | the machine that responds to those stacks       |
| rollouts/advance_rollout, rollouts/await_operator        | the rollouts' machine                           |
| rollouts/admit_tenant, rollouts/record_outcome,          | the same, for one tenant's turn                 |
| rollouts/review_tenant                                   |                                                 |
| reconciling/close_execution                              | SQS, when an execution has ended                |
| reconciling/reconcile                                    | a schedule, and operators                       |
| events/ingest                                            | tenants' producers: over HTTP, with an API key  |
| events/receive                                           | webhooks and forms: over HTTP, from anybody     |
| events/tenant_events                                     | tenants: over HTTP, with an API key             |
| events/event_operators                                   | operators: over HTTP                            |
| events/count_usage                                       | the stream of the table of events               |
| events/bill_usage                                        | a schedule                                      |
| events/dispatch_events                                   | the stream of the table of events               |
| events/deliver_events                                    | SQS: a message asks for one try of a delivery   |
| events/sweep_deliveries                                  | a schedule, every minute                        |
| events/recover_deliveries                                | SQS: dead letters of deliveries                 |
| events/process_bounces                                   | EventBridge, when SES reports a mail            |
| events/redispatch_events                                 | a schedule, and SQS: dead letters of the stream |
| events/unfinished_work                                   | the control plane, before it deletes a tenant   |
| events/publish_events                                    | the stream of the tenants' table, count_usage   |
| events/find_purges                                       | EventBridge, after a delete, and a schedule     |
| events/purge_events                                      | the machine that purges a tenant's events       |

The functions share the code in ``observing.py`` and ``runtime.py``. Those of the event plane share
``event_runtime.py``, ``event_serving.py`` and the answers in ``event_configuration.py`` and ``event_reads.py``.
"""
