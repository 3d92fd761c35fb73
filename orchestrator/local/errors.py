"""What can go wrong on this machine, as opposed to on AWS."""

from orchestrator.common.errors import BerthError


class LocalError(BerthError):
    """The local control plane cannot do what was asked. The message says what to do about it."""
