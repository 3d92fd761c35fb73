"""Tables without borders, which stay readable on a narrow terminal and in a pipe."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_WHOLE = frozenset({"State", "Version", "Tier", "Pin"})
"""Headings of columns with short words, which stay whole like ids and times."""
_MIN_TEXT = 9
"""The minimum width of a column with text that may be broken into lines."""
_PROSE = frozenset({"Destination", "Notes", "Origins"})
_MIN_PROSE = 24
"""The minimum width of a column with sentences or URLs. In a narrower one, a line has a word or two."""


class Columns(Table):
    """A table with one space between columns, so that a tenant id of 40 characters fits into 80.

    Ids and times stay in one line, so that they can be read and copied; other columns give way. If the terminal is too
    narrow even for that, each row is shown as a block of lines.
    """

    def __init__(self, *headings: str) -> None:
        super().__init__(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        for number, heading in enumerate(headings):
            is_id = number == 0 or heading.lower().endswith("id")
            self.add_column(heading, overflow="fold", no_wrap=is_id or heading in _WHOLE or heading.endswith("(UTC)"))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.needed_width(console, options) <= options.max_width:
            yield from super().__rich_console__(console, options)
        else:
            yield from self._blocks()

    def needed_width(self, console: Console, options: ConsoleOptions) -> int:
        """The width below which ids or times would be broken."""
        return sum(self._widths(console, options)) + len(self.columns) - 1

    def _widths(self, console: Console, options: ConsoleOptions) -> list[int]:
        unlimited = options.update(max_width=UNLIMITED)
        widths = []
        for column in self.columns:
            cells = [column.header, *column.cells]
            width = max(Measurement.get(console, unlimited, cell).maximum for cell in cells)
            narrowest = _MIN_PROSE if column.header in _PROSE else _MIN_TEXT
            widths.append(width if column.no_wrap else min(width, narrowest))
        return widths

    def _blocks(self) -> RenderResult:
        headings = [str(column.header) for column in self.columns]
        for row in zip(*(column.cells for column in self.columns), strict=True):
            first, *others = (Text(cell) if isinstance(cell, str) else cell for cell in row)
            yield first
            for heading, cell in zip(headings[1:], others, strict=True):
                if isinstance(cell, Text) and cell.plain:
                    yield Text.assemble("  ", (f"{heading}: " if heading else "", "bold"), cell)


UNLIMITED = 100_000
"""The width of output that no terminal shows: no line of it is broken."""
