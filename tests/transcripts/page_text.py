"""A page as text: headings, tables, forms with their fields, links, buttons and commands, one line each."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "br", "caption", "dd", "details", "div", "dl", "dt"),
        *("fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "header", "hr", "legend", "li"),
        *("main", "nav", "ol", "option", "p", "pre", "section", "summary", "table", "tbody", "td", "textarea", "tfoot"),
        *("th", "thead", "title", "tr", "ul"),
    )
)
_VOID = frozenset(("area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"))
_BEFORE = {"h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### ", "li": "- ", "button": " (", "code": " `"}
_AFTER = {"button": ")", "code": "`"}
MAX_LINE = 600
"""Longer lines are cut: the test fleet has an event with a huge payload."""
_SECRET = frozenset(("csrf", "once"))


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.links: list[str] = []
        self.forms: list[Form] = []
        self._line = ""
        self._cells: list[str] | None = None
        self._skipped: str | None = None
        self._depth = 0
        self._href = ""
        self._name = ""
        """The latest select or textarea."""
        self._is_first_option = False
        self._is_in_textarea = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if self._skipped:
            self._depth += tag == self._skipped
            return
        is_hidden = "hidden" in given and tag not in _VOID
        if is_hidden or tag in ("script", "style", "svg", "head"):
            self._skipped, self._depth = tag, 1
            if tag == "svg" and "aria-label" in given:
                self._line += f" [picture: {given['aria-label']}]"
            return
        if tag == "tr":
            self._end_line()
            self._cells = []
        elif tag in ("td", "th") and self._cells is not None:
            self._cells.append("")
            self._line = ""
        elif tag in _BLOCKS and tag != "dd" and (self._cells is None or tag == "br"):
            self._break()
        self._begin(tag, given)

    def _begin(self, tag: str, given: dict[str, str]) -> None:
        self._line += _BEFORE.get(tag, "")
        match tag:
            case "form":
                method, action = given.get("method", "get").upper(), given.get("action", "")
                self.forms.append(Form(method, action))
                self._line += f"form {method} {action}"
                self._break()
            case "a":
                self._href = given.get("href", "")
                self.links.append(self._href)
                self._line += " ["
            case "span" if given.get("aria-disabled") == "true":
                self._line += " (greyed) "
            case "input":
                self._input(given)
            case "select" | "textarea" | "option":
                self._choice(tag, given)
            case _:
                pass

    def _choice(self, tag: str, given: dict[str, str]) -> None:
        if tag == "option":
            is_chosen = "selected" in given
            self._line += f"  {'*' if is_chosen else '-'} option {given.get('value', '')}: "
            if is_chosen or self._is_first_option:
                self._field(self._name, given.get("value", ""))
            self._is_first_option = False
            return
        self._name = given.get("name", "")
        self._is_first_option, self._is_in_textarea = tag == "select", tag == "textarea"
        self._line += f" <{tag} {self._name}>"
        self._field(self._name, "")

    def _input(self, given: dict[str, str]) -> None:
        kind, name, value = given.get("type", "text"), given.get("name", ""), given.get("value", "")
        if kind not in ("checkbox", "radio"):
            self._field(name, value)
        elif "checked" in given:
            self._field(name, value or "on")
        shown = "..." if name in _SECRET else value
        flags = [flag for flag in ("checked", "required", "disabled", "readonly") if flag in given]
        rules = [
            f"{rule}={given[rule]}" for rule in ("placeholder", "maxlength", "min", "max", "pattern") if rule in given
        ]
        self._line += " <" + " ".join(filter(None, [kind, name, repr(shown) if shown else "", *flags, *rules])) + ">"
        if kind == "hidden":
            self._break()

    def _field(self, name: str, value: str) -> None:
        if self.forms and name:
            self.forms[-1].fields[name] = value

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            self._depth -= tag == self._skipped
            if not self._depth:
                self._skipped = None
            return
        self._line += f"]({self._href})" if tag == "a" else _AFTER.get(tag, "")
        self._is_in_textarea = self._is_in_textarea and tag != "textarea"
        if tag in ("td", "th") and self._cells is not None:
            self._cells[-1] += " " + self._line
            self._line = ""
        elif tag == "tr" and self._cells is not None:
            cells, self._cells = self._cells, None
            self._line = "| " + " | ".join(" ".join(each.split()) for each in cells) + " |"
            self._end_line()
        elif tag == "dt":
            self._line += ": "
        elif tag in _BLOCKS and self._cells is None:
            self._break()

    def handle_data(self, data: str) -> None:
        if self._skipped:
            return
        self._line += data
        if self._is_in_textarea:
            self._field(self._name, data.removeprefix("\n"))

    def close(self) -> None:
        super().close()
        self._end_line()

    def _break(self) -> None:
        if self._cells is None:
            self._end_line()
        else:
            self._line += " / "

    def _end_line(self) -> None:
        text = " ".join(self._line.split())
        if text == "-":
            return  # The content of the item begins with a block of its own.
        if len(text) > MAX_LINE:
            text = f"{text[:MAX_LINE]} ... ({len(text)} characters)"
        if text:
            self.lines.append(re.sub(r"\[ ", "[", re.sub(r"\( ", "(", re.sub(r" ([\])])", r"\1", text))))
        self._line = ""


class Form:
    def __init__(self, method: str, action: str) -> None:
        self.method, self.action = method, action
        self.fields: dict[str, str] = {}


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader
