"""One thin file a function: parse, call one use case, return.

| function                                  | called by                              |
|-------------------------------------------|----------------------------------------|
| get_queue                                 | platforms: over HTTP, or directly      |
| begin, start_stack, await_stack,          | the state of that name in the machines |
| inspect_stack, finish, record_failure     |                                        |
| stack_event                               | EventBridge, when a stack has settled  |
| tenant_metadata                           | a tenant's stack, as a custom resource |
| publish_release                           | the control plane's own deployment     |

What they share is in ``runtime.py``.
"""
