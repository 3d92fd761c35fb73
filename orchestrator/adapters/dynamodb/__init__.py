"""The tables: that of the control plane, and that of events. Their keys, their rows, and one module per capability.

All rows:

- :mod:`orchestrator.adapters.dynamodb.reads`                         reads that modules share
- :mod:`orchestrator.adapters.dynamodb.writes`                        items of transactions
- :mod:`orchestrator.adapters.dynamodb.expressions`                   writes with conditions, as requests
- :mod:`orchestrator.adapters.dynamodb.transacting`                   transactions whose conditions may fail
- :mod:`orchestrator.adapters.dynamodb.values`                        values in DynamoDB's format

Tenants' rows:

- :mod:`orchestrator.adapters.dynamodb.keys`                          the keys of the control plane's table
- :mod:`orchestrator.adapters.dynamodb.columns`                       how each field of a record is stored
- :mod:`orchestrator.adapters.dynamodb.tenant_values`                 values of these fields
- :mod:`orchestrator.adapters.dynamodb.rows`                          rows as records
- :mod:`orchestrator.adapters.dynamodb.history_rows`                  entries of the history
- :mod:`orchestrator.adapters.dynamodb.listing_rows`                  rows of the index
- :mod:`orchestrator.adapters.dynamodb.applying`                      transitions as requests
- :mod:`orchestrator.adapters.dynamodb.tenants`                       tenants and releases
- :mod:`orchestrator.adapters.dynamodb.reviews`                       reviews of updates
- :mod:`orchestrator.adapters.dynamodb.create_counts`                 counted creates and tenants

Other rows of the control plane:

- :mod:`orchestrator.adapters.dynamodb.release_states`                the state of releases
- :mod:`orchestrator.adapters.dynamodb.rollouts`                      rollouts
- :mod:`orchestrator.adapters.dynamodb.rollout_rows`                  their rows
- :mod:`orchestrator.adapters.dynamodb.create_turns`                  turns of creates
- :mod:`orchestrator.adapters.dynamodb.pool`                          stacks that are kept ready
- :mod:`orchestrator.adapters.dynamodb.reconciliations`               reconciliations and their positions

Configuration of the event plane:

- :mod:`orchestrator.adapters.dynamodb.event_keys`                    the keys of the event plane
- :mod:`orchestrator.adapters.dynamodb.event_configuration`           settings, keys, sources, forms
- :mod:`orchestrator.adapters.dynamodb.event_configuration_writes`    their writes
- :mod:`orchestrator.adapters.dynamodb.connections`                   connections
- :mod:`orchestrator.adapters.dynamodb.connection_rows`               their rows
- :mod:`orchestrator.adapters.dynamodb.event_epochs`                  which epochs there are
- :mod:`orchestrator.adapters.dynamodb.event_tenants`                 which tenants are alive
- :mod:`orchestrator.adapters.dynamodb.event_tenant_queues`           tenants' queues
- :mod:`orchestrator.adapters.dynamodb.event_usage`                   the usage of a month
- :mod:`orchestrator.adapters.dynamodb.event_usage_writes`            its counters
- :mod:`orchestrator.adapters.dynamodb.event_changes`                 changes on record
- :mod:`orchestrator.adapters.dynamodb.event_unreadable`              rows that cannot be read

Events and deliveries:

- :mod:`orchestrator.adapters.dynamodb.events`                        accepting events
- :mod:`orchestrator.adapters.dynamodb.event_rows`                    rows of events
- :mod:`orchestrator.adapters.dynamodb.event_reads`                   reads and lists
- :mod:`orchestrator.adapters.dynamodb.delivery_keys`                 the keys of deliveries
- :mod:`orchestrator.adapters.dynamodb.deliveries`                    deliveries
- :mod:`orchestrator.adapters.dynamodb.delivery_rows`                 their rows
- :mod:`orchestrator.adapters.dynamodb.parked`                        the count of parked deliveries
- :mod:`orchestrator.adapters.dynamodb.replays`                       replays
- :mod:`orchestrator.adapters.dynamodb.event_purges`                  purges

Streams:

- :mod:`orchestrator.adapters.dynamodb.event_stream`                  records, for counting
- :mod:`orchestrator.adapters.dynamodb.dispatch_stream`               records, for dispatching
- :mod:`orchestrator.adapters.dynamodb.own_event_stream`              records, for Berth's own events
"""
