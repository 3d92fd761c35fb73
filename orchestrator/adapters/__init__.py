"""The only code that talks to AWS: one module a service, and the table's key shapes in one file.

:mod:`orchestrator.composition` is the composition root.
"""
