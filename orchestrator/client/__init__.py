"""The Python client of Berth's API: what platforms, the command line and the console use.

1. :mod:`orchestrator.client.client`     a tenant's queue, and whatever else a route offers
2. :mod:`orchestrator.client.errors`     what the client raises
3. :mod:`orchestrator.client.asking`     asking again where that helps, and not for ever
4. :mod:`orchestrator.client.transport`  one signed request, one answer
"""
