"""Errors of the local control plane."""

from orchestrator.common.errors import BerthError


class LocalError(BerthError):
    """The local control plane cannot do what the user asked for. The message says what to do."""
