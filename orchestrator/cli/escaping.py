"""Keeps text from outside from controlling the terminal: control characters are printed as escape sequences.

A tenant's root cause, a caller's name or a release's notes may hold an escape sequence that moves the cursor, hides a
line or rewrites the clipboard. Every console of the command line is a SafeConsole, so that no command can forget to
escape. The consoles of :mod:`orchestrator.cli.render` do not interpret markup either: ``[link=...]`` in a version would
become a link.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_KEPT = frozenset("\n\t")


def escaped(text: str) -> str:
    """The text with each unprintable character as its escape sequence: ESC, C1 controls, bidirectional controls."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _KEPT else ascii(char)[1:-1] for char in text)


class SafeConsole(Console):
    """Escapes everything that it prints: lines, tables, and displays that are redrawn.

    Rich's own control sequences are kept: they are in segments that are marked as control.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escaped(segment.text), segment.style)
