"""The tree of exceptions, as the docstring of its module draws it."""

from __future__ import annotations

import re

from orchestrator.common import errors


def test_the_drawn_tree_has_every_exception_below_its_base() -> None:
    assert errors.__doc__
    drawn: dict[str, str] = {}
    above: list[str] = []
    for indent, name in re.findall(r"^ {4}((?:[│ ] {3})*(?:[├└]── )?)(\w+)", errors.__doc__, re.MULTILINE):
        del above[len(indent) // 4 :]
        if above:
            drawn[name] = above[-1]
        above.append(name)
    assert drawn == {
        kind.__name__: kind.__base__.__name__
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.BerthError) and kind is not errors.BerthError
        if kind.__base__
    }
