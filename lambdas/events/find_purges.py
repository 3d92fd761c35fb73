"""Finds deleted tenants whose events are still kept."""


def handler(_event: object, _context: object) -> None:
    """Does nothing yet."""
