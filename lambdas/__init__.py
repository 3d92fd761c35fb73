"""One thin file a function: parse, call one use case, return.

| function                                  | called by                                      |
|-------------------------------------------|------------------------------------------------|
| get_queue                                 | platforms: over HTTP, or directly              |
| operators                                 | operators: over HTTP                           |
| begin, review_changes, check_messages,    | the state of that name in the tenants' machines |
| start_stack, await_stack, inspect_stack,  |                                                |
| finish, record_failure                    |                                                |
| advance_rollout, await_operator           | the rollouts' machine                          |
| admit_tenant, record_outcome,             | the same, for one tenant's turn                |
| review_tenant                             |                                                |
| stack_event                               | EventBridge, when a stack has settled          |
| tenant_metadata                           | a tenant's stack, as a custom resource         |
| tenant_queue                              | other teams' stacks, as a custom resource      |
| settle_tenant_queue                       | the machine that answers those                 |
| publish_release, start_rollout            | the control plane's own deployment             |

What they share is in ``runtime.py``.
"""
