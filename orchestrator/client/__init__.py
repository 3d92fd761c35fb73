"""The Python client of Berth's API, for platforms, tenants, the command line and the console.

1. :mod:`orchestrator.client.client`     the client: a queue of a tenant, and every other route
2. :mod:`orchestrator.client.errors`     the errors that the client raises
3. :mod:`orchestrator.client.retrying`   repeating requests until a deadline
4. :mod:`orchestrator.client.transport`  one request, signed or with an API key, and its answer
"""
