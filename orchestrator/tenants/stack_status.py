"""The meaning of each CloudFormation stack status for a tenant."""

from __future__ import annotations

from enum import Enum, auto


class StackCondition(Enum):
    WORKING = auto()
    """CloudFormation is changing the stack. Wait."""
    DONE = auto()
    """The latest change of the stack succeeded."""
    DONE_AT_OLD_VERSION = auto()
    """An update failed and was rolled back. The stack is healthy, as it was before."""
    GONE = auto()
    """The stack is deleted."""
    CREATION_FAILED = auto()
    """The stack's creation failed. Its queue was never in use, so the stack may be deleted and created again."""
    NEEDS_ROLLBACK = auto()
    """An update failed and was not rolled back. RollbackStack repairs the stack."""
    NEEDS_ROLLBACK_CONTINUED = auto()
    """The rollback of an update failed. ContinueUpdateRollback repairs the stack; deleting it would lose the queue."""
    BROKEN = auto()
    """A person has to decide what to do."""


_CONDITIONS = {
    "CREATE_IN_PROGRESS": StackCondition.WORKING,
    "CREATE_COMPLETE": StackCondition.DONE,
    "CREATE_FAILED": StackCondition.CREATION_FAILED,
    "ROLLBACK_IN_PROGRESS": StackCondition.WORKING,
    "ROLLBACK_COMPLETE": StackCondition.CREATION_FAILED,
    "ROLLBACK_FAILED": StackCondition.CREATION_FAILED,
    # The stack's first change set was never executed. The stack stays like this until it is deleted.
    "REVIEW_IN_PROGRESS": StackCondition.CREATION_FAILED,
    "UPDATE_IN_PROGRESS": StackCondition.WORKING,
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": StackCondition.WORKING,
    "UPDATE_COMPLETE": StackCondition.DONE,
    "UPDATE_FAILED": StackCondition.NEEDS_ROLLBACK,
    "UPDATE_ROLLBACK_IN_PROGRESS": StackCondition.WORKING,
    "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS": StackCondition.WORKING,
    "UPDATE_ROLLBACK_COMPLETE": StackCondition.DONE_AT_OLD_VERSION,
    "UPDATE_ROLLBACK_FAILED": StackCondition.NEEDS_ROLLBACK_CONTINUED,
    "DELETE_IN_PROGRESS": StackCondition.WORKING,
    "DELETE_COMPLETE": StackCondition.GONE,
    "DELETE_FAILED": StackCondition.BROKEN,
    "IMPORT_IN_PROGRESS": StackCondition.WORKING,
    "IMPORT_COMPLETE": StackCondition.DONE,
    "IMPORT_ROLLBACK_IN_PROGRESS": StackCondition.WORKING,
    "IMPORT_ROLLBACK_COMPLETE": StackCondition.DONE_AT_OLD_VERSION,
    "IMPORT_ROLLBACK_FAILED": StackCondition.BROKEN,
}


def condition(status: str) -> StackCondition:
    """The condition for a status. An unknown status is WORKING if its name says so, and otherwise BROKEN."""
    if status in _CONDITIONS:
        return _CONDITIONS[status]
    return StackCondition.WORKING if status.endswith("_IN_PROGRESS") else StackCondition.BROKEN
