"""Text from elsewhere cannot steer the terminal: control characters are shown as what they are.

A tenant's root cause, a caller's name or a release's notes may hold an escape sequence that moves the cursor, hides a
line or rewrites the clipboard. Every console of the command line has this hook, so that no command can forget it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

_KEPT = frozenset("\n\t")


def escaped(text: str) -> str:
    """The text with everything spelled out that is no printable character: ESC, C1, and what turns text around."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in _KEPT else ascii(each)[1:-1] for each in text)


def safe_console(console: Console) -> Console:
    console.push_render_hook(_EscapingHook())
    return console


class _EscapingHook(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Escaped(each) for each in renderables]


@dataclass(frozen=True, slots=True)
class _Escaped:
    """What rich draws, with its own control sequences: those are segments of a kind of their own."""

    drawn: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return self._segments(console.render(self.drawn, options))

    def _segments(self, segments: Iterable[Segment]) -> Iterable[Segment]:
        for segment in segments:
            yield segment if segment.control else Segment(escaped(segment.text), segment.style)
