"""The only code that talks to AWS: one module per service, or per use of it. The tables have a package of their own.

:mod:`orchestrator.adapters.ports` makes every adapter of the control plane; :mod:`orchestrator.composition` builds use
cases from them. :mod:`orchestrator.adapters.event_ports` does the same for :mod:`orchestrator.event_composition`.

All adapters use:

- :mod:`orchestrator.adapters.aws`              clients, and AWS errors as those of the domain
- :mod:`orchestrator.adapters.settings`         the settings of a function, from its environment
- :mod:`orchestrator.adapters.sessions`         SDK sessions that ignore the environment, for people
- :mod:`orchestrator.adapters.dynamodb`         both tables

The control plane:

- :mod:`orchestrator.adapters.cloudformation`   tenants' stacks, and resources in other stacks
- :mod:`orchestrator.adapters.migration`        adopts the tenants of the system before Berth
- :mod:`orchestrator.adapters.survey`           all stacks, drift detection, the limit on stacks
- :mod:`orchestrator.adapters.custom_resource`  responses to CloudFormation
- :mod:`orchestrator.adapters.stepfunctions`    executions of the machines
- :mod:`orchestrator.adapters.sqs`              tenants' queues
- :mod:`orchestrator.adapters.s3`               templates, and rollouts' lists of tenants
- :mod:`orchestrator.adapters.sts`              temporary credentials for queues
- :mod:`orchestrator.adapters.cloudwatch`       alarms that stop a rollout
- :mod:`orchestrator.adapters.iam`              the policies for tenants' stacks
- :mod:`orchestrator.adapters.apigateway`       the API's stage, with its proof
- :mod:`orchestrator.adapters.functions`        the concurrency of functions
- :mod:`orchestrator.adapters.unfinished_work`  a tenant's unfinished work, from another stack

The event plane:

- :mod:`orchestrator.adapters.event_contents`   large contents of events, in S3
- :mod:`orchestrator.adapters.kms`              signing secrets
- :mod:`orchestrator.adapters.delivery_queues`  the two queues of deliveries
- :mod:`orchestrator.adapters.http_sender`      webhooks
- :mod:`orchestrator.adapters.queue_messages`   messages to tenants' own queues
- :mod:`orchestrator.adapters.ses`              mail
- :mod:`orchestrator.adapters.ses_reports`      bounces and complaints
- :mod:`orchestrator.adapters.event_access`     temporary credentials for a tenant's events
- :mod:`orchestrator.adapters.eventbridge`      the bus of Berth's own events
- :mod:`orchestrator.adapters.handover`         records of a stream, for another function
"""
