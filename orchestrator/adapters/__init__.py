"""The only code that talks to AWS: one module a service, and the table's key shapes in one file.

:mod:`orchestrator.adapters.ports` makes every adapter; :mod:`orchestrator.composition` builds use cases from them.
"""
