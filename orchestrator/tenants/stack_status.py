"""Every CloudFormation stack status, sorted by what it means for a tenant."""

from __future__ import annotations

from enum import Enum, auto


class StackCondition(Enum):
    WORKING = auto()
    """CloudFormation is at it. Wait."""
    DONE = auto()
    """The stack is what was last asked for."""
    DONE_AT_OLD_VERSION = auto()
    """An update failed and was undone: healthy, as it was before."""
    GONE = auto()
    """Deleted."""
    NEVER_LIVED = auto()
    """Its creation failed. There was never a queue in use, so it may be deleted and created anew."""
    NEEDS_ROLLBACK = auto()
    """An update failed and was not undone. RollbackStack heals it."""
    NEEDS_ROLLBACK_CONTINUED = auto()
    """Undoing an update failed. ContinueUpdateRollback heals it; deleting would lose the queue."""
    BROKEN = auto()
    """Only a person can tell what to do."""


_CONDITIONS = {
    "CREATE_IN_PROGRESS": StackCondition.WORKING,
    "CREATE_COMPLETE": StackCondition.DONE,
    "CREATE_FAILED": StackCondition.NEVER_LIVED,
    "ROLLBACK_IN_PROGRESS": StackCondition.WORKING,
    "ROLLBACK_COMPLETE": StackCondition.NEVER_LIVED,
    "ROLLBACK_FAILED": StackCondition.NEVER_LIVED,
    # A change set was begun and never executed: it stays so until someone deletes it.
    "REVIEW_IN_PROGRESS": StackCondition.NEVER_LIVED,
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
    """Sort a status. One that does not exist yet is waited for if it says so, and otherwise left to a person."""
    if status in _CONDITIONS:
        return _CONDITIONS[status]
    return StackCondition.WORKING if status.endswith("_IN_PROGRESS") else StackCondition.BROKEN
