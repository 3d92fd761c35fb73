"""The tables of docs/costs.md, which tests compare with what they count."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "costs.md"


def table(heading: str, page: Path = PAGE) -> dict[str, dict[str, str]]:
    """The table under that heading: its cells by the first column, and by the names of the others."""
    return _table(page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0])


def totals() -> dict[str, str]:
    """The page's first table, in dollars."""
    opening = PAGE.read_text(encoding="utf-8").split("\n## ")[0]
    return {name: row["USD"] for name, row in _table(opening).items()}


def _table(section: str) -> dict[str, dict[str, str]]:
    rows = [_cells(line) for line in section.splitlines() if line.startswith("|")]
    names, _, *content = rows
    return {first: dict(zip(names[1:], rest, strict=True)) for first, *rest in content}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
