"""The only code that talks to AWS: one module per service. The table has a package of its own.

:mod:`orchestrator.adapters.ports` makes every adapter; :mod:`orchestrator.composition` builds use cases from them.
"""
