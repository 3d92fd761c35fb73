"""Text from elsewhere cannot steer the terminal: control characters are shown as what they are.

A tenant's root cause, a caller's name or a release's notes may hold an escape sequence that moves the cursor, hides a
line or rewrites the clipboard. Every console of the command line is a SafeConsole, so that no command can forget it.
Those of :mod:`orchestrator.cli.render` do not read markup either: ``[link=...]`` in a version would become a link.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_KEPT = frozenset("\n\t")


def escaped(text: str) -> str:
    """The text with everything spelled out that is no printable character: ESC, C1, and what turns text around."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in _KEPT else ascii(each)[1:-1] for each in text)


class SafeConsole(Console):
    """Prints everything escaped, whatever draws it: a line, a table, or a frame that is drawn again and again.

    Rich's own control sequences are kept. They are segments of a kind of their own.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escaped(segment.text), segment.style)
