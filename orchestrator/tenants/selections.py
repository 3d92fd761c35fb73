"""Finds what a selection of tenants names by mistake: ids and labels that no tenant has.

A selection that matches nothing because of a typing mistake must not look like a fleet that needs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

MAX_NAMED = 10
"""The maximum number of ids, names or values that a message lists."""


def no_such_tenants(unknown: Collection[str], existing: Collection[str]) -> str:
    """The message about tenants that were named and do not exist, with similar ids that do."""
    close = {each for name in unknown for each in get_close_matches(name, existing)}
    if close:
        there = f" Similar ids: {listed(close)}."
    else:
        there = f" There are these tenants: {listed(existing)}." if existing else " There are no tenants yet."
    return f"{'No such tenant' if len(unknown) == 1 else 'No such tenants'}: {listed(unknown)}.{there}"


def unknown_labels(wanted: Mapping[str, str], labels: Iterable[Mapping[str, str]]) -> str | None:
    """The message about a wanted label that no tenant has, with those that tenants have; ``None`` if all are in use.

    ``labels`` are the labels of each tenant. Without tenants, no label is a mistake.
    """
    values: dict[str, set[str]] = {}
    tenants = list(labels)
    for each in tenants:
        for name, value in each.items():
            values.setdefault(name, set()).add(value)
    for name, value in wanted.items() if tenants else ():
        if name not in values:
            there = f"Labels in use: {listed(values)}." if values else "No tenant has labels."
            return f"No tenant has a label {name}. {there}"
        if value not in values[name]:
            return f"No tenant has the label {name}={value}. Values of {name}: {listed(values[name])}."
    return None


def listed(names: Iterable[str]) -> str:
    """The names in order, at most ten of them."""
    ordered = sorted(names)
    more = f" and {len(ordered) - MAX_NAMED} more" if len(ordered) > MAX_NAMED else ""
    return ", ".join(name or "(empty)" for name in ordered[:MAX_NAMED]) + more
