"""The event plane: the events of a tenant are accepted once, kept, and read.

1. :mod:`orchestrator.events.plans`       plans and what each of them includes
2. :mod:`orchestrator.events.records`     settings, API keys, sources, forms, events
3. :mod:`orchestrator.events.event_ids`   ids that are keys: time, shard and uniqueness in one UUID
4. :mod:`orchestrator.events.api_keys`    API keys: making, hashing and checking them
5. :mod:`orchestrator.events.content`     how the bytes of an event are stored: as they are, compressed, or in S3
6. :mod:`orchestrator.events.statuses`    the statuses of events and the words for them
7. :mod:`orchestrator.events.ports`       what the event plane needs from outside
8. :mod:`orchestrator.events.authorising` who may do what: keys, sources and forms of living tenants
9. :mod:`orchestrator.events.quotas`      the limits of a plan: events per second and per month
10. :mod:`orchestrator.events.rates`      how often something may be done: requests of a tenant, submissions of a form
11. :mod:`orchestrator.events.event_types` which texts are the type of an event
12. :mod:`orchestrator.events.accepting`  accepting an event, by one write
13. :mod:`orchestrator.events.listing`    reading events: one by its id, and lists of them
14. :mod:`orchestrator.events.readable_json`  which JSON can be shown to readers as it is
15. :mod:`orchestrator.events.documents`  how an event is shown outside
16. :mod:`orchestrator.events.inbox`      the events that a tenant pulls and acknowledges
17. :mod:`orchestrator.events.access`     temporary credentials with which a tenant's own programs read its events
18. :mod:`orchestrator.events.remembering` results of reads that a warm function remembers for some seconds

:mod:`orchestrator.events.delivery` brings accepted events to the connections of their tenant.

Webhooks and forms:

- :mod:`orchestrator.events.incoming`    a request to a public address, byte for byte
- :mod:`orchestrator.events.signatures`  checking that a webhook comes from its provider
- :mod:`orchestrator.events.challenges`  questions by which providers check an address
- :mod:`orchestrator.events.providers`   delivery ids and event types, as each provider names them
- :mod:`orchestrator.events.hops`        the hop count, which ends loops
- :mod:`orchestrator.events.forms`       reading submissions; origins, redirects and quotas of forms
- :mod:`orchestrator.events.receiving`   taking webhooks and submissions

Configuration:

- :mod:`orchestrator.events.configuring`          settings and plans
- :mod:`orchestrator.events.configuring_keys`     API keys
- :mod:`orchestrator.events.configuring_sources`  sources of webhooks
- :mod:`orchestrator.events.configuring_forms`    forms
- :mod:`orchestrator.events.configuring_connections`  connections: where events are delivered to
- :mod:`orchestrator.events.sending_tests`        an event that tests one connection
- :mod:`orchestrator.events.zapier_samples`       samples of payloads, for people who make a Zap
- :mod:`orchestrator.events.changes`              who changed the configuration, when and how
- :mod:`orchestrator.events.resource_ids`         the ids of keys, sources, forms and connections
- :mod:`orchestrator.events.refusals`             why a request is refused

Usage, and the end of a tenant:

- :mod:`orchestrator.events.usage`        counting events, for limits and for bills
- :mod:`orchestrator.events.unfinished`   events that a delete of the tenant would lose
- :mod:`orchestrator.events.purging`      deleting what a deleted tenant has left behind
- :mod:`orchestrator.events.purge_steps`  the payloads of the machine that purges
"""
