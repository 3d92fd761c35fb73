"""The HTTP API. No other package of the domain knows about HTTP.

The routes are declared once. The function, the gateway, the policies, the client and the OpenAPI document read them:

1. :mod:`orchestrator.api.route`                  the declaration of a route
2. :mod:`orchestrator.api.problems`               kinds of problems
3. :mod:`orchestrator.api.fields`                 the types of values in requests and answers
4. :mod:`orchestrator.api.queue_routes`           the routes for platforms, senders and receivers
5. :mod:`orchestrator.api.tenant_routes`          the operators' routes for tenants
6. :mod:`orchestrator.api.tenant_models`          the requests and answers of these routes
7. :mod:`orchestrator.api.release_routes`         the operators' routes for releases
8. :mod:`orchestrator.api.release_models`         the requests and answers of these routes
9. :mod:`orchestrator.api.rollout_routes`         the operators' routes for rollouts
10. :mod:`orchestrator.api.rollout_models`        the answers of these routes;
    :mod:`orchestrator.api.rollout_requests`      their requests
11. :mod:`orchestrator.api.reconciliation_routes`  the operators' routes for reconciliations and health;
    :mod:`orchestrator.api.operation_routes`       has the route for the newest operations of all tenants;
    :mod:`orchestrator.api.comparison_routes`      has the route that compares a tenant with its stack
12. :mod:`orchestrator.api.event_problems`        kinds of problems of the event plane
13. :mod:`orchestrator.api.event_fields`          the types of values in its requests and answers
14. :mod:`orchestrator.api.event_routes`          the tenants' routes for events
15. :mod:`orchestrator.api.event_read_routes`     the routes that read events and acknowledge those of the inbox
16. :mod:`orchestrator.api.event_configuration_routes`  the routes for event settings, API keys, sources and forms
17. :mod:`orchestrator.api.event_configuration_models`  the requests and answers of these routes
18. :mod:`orchestrator.api.connection_routes`     the routes for connections, and for Zapier
19. :mod:`orchestrator.api.connection_models`     the requests and answers of these routes
20. :mod:`orchestrator.api.delivery_routes`       the routes that show what became of events, and send them again
21. :mod:`orchestrator.api.event_change_routes`   the routes for the record of changes of all these
22. :mod:`orchestrator.api.event_usage_routes`    the routes for usage and purges
23. :mod:`orchestrator.api.receiving_routes`      the routes for everybody: webhooks and forms
24. :mod:`orchestrator.api.for_operators`         operators' routes for what tenants can do themselves
25. :mod:`orchestrator.api.routes`                all routes of the control plane
26. :mod:`orchestrator.api.event_plane_routes`    all routes of the event plane

Requests and answers:

- :mod:`orchestrator.api.reading`                  from HTTP to wire models, for functions
- :mod:`orchestrator.api.requesting`               from wire models to HTTP, for clients
- :mod:`orchestrator.api.responses`                the parts that all answers share, and problem details
- :mod:`orchestrator.api.answers`                  getQueue's answers
- :mod:`orchestrator.api.queueless_answers`        those about tenants that have no queue
- :mod:`orchestrator.api.operator_answers`
- :mod:`orchestrator.api.release_answers`
- :mod:`orchestrator.api.rollout_answers`
- :mod:`orchestrator.api.reconciliation_answers`
- :mod:`orchestrator.api.operation_answers`
- :mod:`orchestrator.api.comparison_answers`
- :mod:`orchestrator.api.event_reading`            from HTTP to events, byte for byte
- :mod:`orchestrator.api.event_answers`
- :mod:`orchestrator.api.event_read_answers`
- :mod:`orchestrator.api.event_configuration_answers`
- :mod:`orchestrator.api.connection_answers`
- :mod:`orchestrator.api.delivery_answers`
- :mod:`orchestrator.api.event_change_answers`
- :mod:`orchestrator.api.event_usage_answers`
- :mod:`orchestrator.api.receiving_answers`        answers to webhooks and forms

:mod:`orchestrator.api.openapi` generates the OpenAPI documents, which ``berth openapi`` prints, with the examples in
orchestrator/api/examples/; :mod:`orchestrator.api.openapi_schemas` their schemas.
"""
