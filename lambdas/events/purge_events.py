"""Deletes the events and the configuration of a deleted tenant."""


def handler(_event: object, _context: object) -> None:
    """Does nothing yet."""
