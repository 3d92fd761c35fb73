"""Counts the events that the table's stream reports."""


def handler(_event: object, _context: object) -> None:
    """Does nothing yet."""
