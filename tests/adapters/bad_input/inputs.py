"""Bad inputs: valid events with something wrong in them, and values that are no events.

Everything is made from one random generator, so a seed is as good as the input itself.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from random import Random
from typing import Any
from urllib.parse import quote

DEEP = (1, 2, 5, 60, 200, 970)
"""How deeply things are nested: Lambda itself reads no more than about a thousand levels."""


class JsonText(dict[str, Any]):
    """An object that is sent as text: the body of a request or of a message."""


def an_input(rng: Random, template: object) -> Any:
    """The template with something wrong in it. Some are left as they are, and some are no such thing at all."""
    chance = rng.random()
    if chance < 0.06:
        return anything(rng)
    event = _copied(template)
    if chance < 0.96:
        for _ in range(rng.choice((1, 1, 1, 1, 1, 2, 2, 3, 6))):
            mutate(rng, event)
    return sent(rng, event, tampered=0.12 if chance < 0.96 else 0)


def over_http(rng: Random, event: Any) -> Any:
    """The same with the body in base64, or in what is said to be that."""
    if not isinstance(event, dict) or not isinstance(event.get("body"), str) or rng.random() > 0.15:
        return event
    body: str = event["body"]
    encodings: tuple[Callable[[], str], ...] = (
        lambda: base64.b64encode(body.encode(errors="replace")).decode(),
        lambda: base64.b64encode(body.encode("utf-16", errors="replace")).decode(),
        lambda: base64.b64encode(body.encode("latin-1", errors="replace") + b"\xff\xfe").decode(),
        lambda: base64.urlsafe_b64encode(b"\xfb\xff" + body.encode(errors="replace")).decode(),
        lambda: base64.b64encode(body.encode(errors="replace")).decode().rstrip("=") + "=\n",
        lambda: body,
    )
    return {**event, "body": rng.choice(encodings)(), "isBase64Encoded": rng.choice((True, True, 1, "yes"))}


# Values


def _nested(rng: Random, value: object = None) -> object:
    lists = rng.random() < 0.5
    for _ in range(rng.choice(DEEP)):
        value = [value] if lists else {"a": value}
    return value


def _letters(rng: Random) -> str:
    alphabet = (
        "aZ09-_.#/\\%&?='\"<>{}[]()$*,;:@!~^|` \t\r\n\0\x1b\x7f\x85\u00e9\u0130\u200b\u202e\u2028\ufeff\uff41\ud800"
    )
    return "".join(rng.choices(alphabet, k=rng.choice((0, 1, 2, 3, 8, 41, 70))))


_TEXTS = (
    "",
    " ",
    "\n",
    "\0",
    "a",
    "-a",
    "a-",
    "a\n",
    "a\0",
    "acme ",
    "other",
    "TENANT_ID#other",
    "acme#METADATA",
    "a/../b",
    "../../etc/passwd",
    "..%2f..%2fother",
    "%61cme",
    "acme%00",
    "\uff41\uff43\uff4d\uff45",
    "\u0430cme",
    "acm\u0065\u0301",
    "\u0660\u0661",
    "\U0001f6a2",
    "\ud83d",
    "\udea2\ud83d",
    "a\u202e",
    "a" * 40,
    "a" * 41,
    "0.1.0",
    "0.1.0\n",
    "v0.1.0",
    "9999.9999.9999",
    "10000.0.0",
    "20261116-120000-abcd",
    "20261116-120000-ABCD",
    "20261116-120000-abcd\n",
    "settling",
    "CREATE",
    "true",
    "null",
    "NaN",
    "1e400",
    "9" * 5_000,
    "[]",
    "{}",
    "[" * 100_000,
    '{"a":' * 5_000,
    "{% $states.input %}",
    "$.execution",
    "${BERTH_TABLE}",
    '{"S": "x"}',
    "' OR 1=1 --",
    "<script>",
    "arn:aws:states:eu-west-1:000000000000:execution:x:y",
    "arn:aws:cloudformation:eu-west-1:000000000000:stack//",
    "berth-tenant-",
    "https://",
    "http://[",
    "file:///etc/passwd",
    "ftp://example.com/x",
    "https://example.com/\r\nX: y",
    "2026-02-30",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "2026-11-16T12:00:00.000Z",
    "x" * 4_097,
    "\u20ac" * 70_000,
)
_NUMBERS = (
    0,
    1,
    -1,
    2,
    499,
    500,
    501,
    1_200,
    1_201,
    99_999,
    100_000,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    10**400,
    -(10**4_000),
    0.0,
    -0.0,
    0.1,
    1.0,
    5.0,
    1.5,
    1e308,
    5e-324,
    float("inf"),
    float("-inf"),
    float("nan"),
)
_VALUES: tuple[Callable[[Random], object], ...] = (
    lambda _: None,
    lambda rng: rng.random() < 0.5,
    lambda rng: rng.choice(_NUMBERS),
    lambda rng: rng.choice(_NUMBERS),
    lambda rng: rng.choice(_TEXTS),
    lambda rng: rng.choice(_TEXTS),
    lambda rng: rng.choice(_TEXTS),
    _letters,
    _letters,
    lambda rng: [rng.choice(_TEXTS)] * rng.choice((0, 1, 2, 21, 600)),
    lambda rng: {rng.choice(_TEXTS): rng.choice(_NUMBERS)},
    lambda rng: {f"label-{number}": "" for number in range(rng.choice((0, 1, 20, 21, 300)))},
    _nested,
)


def anything(rng: Random) -> Any:
    return rng.choice(_VALUES)(rng)


# Changes of a valid event


def _drop(_rng: Random, holder: Any, key: Any) -> None:
    del holder[key]


def _retype(rng: Random, holder: Any, key: Any) -> None:
    holder[key] = anything(rng)


def _twist(rng: Random, holder: Any, key: Any) -> None:
    """Something that looks nearly the same."""
    value = holder[key]
    if key in _NASTY and rng.random() < 0.4:
        holder[key] = rng.choice(_NASTY[key])
    elif isinstance(value, str):
        holder[key] = _twisted(rng, value)
    elif isinstance(value, bool):
        holder[key] = rng.choice((str(value), str(value).lower(), int(value)))
    elif isinstance(value, int | float):
        holder[key] = rng.choice((str(value)[:50], -value, value * 10, 1.0, 1.5, [value]))
    else:
        holder[key] = rng.choice(([value], None, list(value or ())))


_TENANTS = (
    "a_b",
    "a.b",
    "a b",
    "a/../b",
    "TENANT_ID#other",
    "acme#",
    "\uff41cme",
    "\u0430cme",
    "a\n",
    "a" * 41,
    "a" * 40,
)
_NASTY: dict[object, tuple[str, ...]] = {
    "tenantId": _TENANTS,
    "TenantId": _TENANTS,
    "StartTime": ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-W01", "12:00", "2026-11-16"),
    # READY/0.1.0/0.2.0#acme, READY/0.1.0/0.1.0, READY//0.1.0#acme
    "cursor": ("UkVBRFkvMC4xLjAvMC4yLjAjYWNtZQ", "UkVBRFkvMC4xLjAvMC4xLjA", "UkVBRFkvLzAuMS4wI2FjbWU"),
    "stack-id": ("arn:aws:cloudformation:eu-west-1:000000000000:stack/", "berth-tenant-acme", "arn:/"),
    "startDate": ("0", "1e3"),
}
"""The values that parsers of each of these are known to get wrong."""


def _twisted(rng: Random, text: str) -> str:
    if len(text) > 5_000:
        return text[: rng.randrange(len(text))]
    return rng.choice(_TWISTS)(text, rng.randrange(len(text) + 1), rng)


_INSERTED = ("\ud800", "\0", "#", "/", "/../", "%2f", "\r\n", "'", '"')
_TWISTS: tuple[Callable[[str, int, Random], str], ...] = (
    lambda text, _at, _rng: text + "\n",
    lambda text, _at, _rng: f" {text}",
    lambda text, _at, _rng: text + "\0",
    lambda text, _at, _rng: text.swapcase(),
    lambda text, _at, _rng: text * 2,
    lambda text, _at, _rng: text * 60,
    lambda text, _at, _rng: quote(text, safe="", errors="replace") + "%00",
    lambda text, _at, _rng: "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in text),
    lambda text, at, _rng: text[:at],
    lambda text, at, rng: text[:at] + rng.choice(_INSERTED) + text[at:],
    lambda text, at, rng: text[:at] + _letters(rng) + text[at:],
    lambda text, _at, _rng: f"{text},{text}",
    lambda text, _at, _rng: f"TENANT_ID#{text}",
    lambda text, _at, rng: text.ljust(41, rng.choice("ax-")),
)


def _similar(rng: Random, key: Any) -> Any:
    return _twisted(rng, key) if isinstance(key, str) else key


def _rename(rng: Random, holder: Any, key: Any) -> None:
    value = holder[key]
    del holder[key]
    if isinstance(holder, dict):
        holder[_similar(rng, key)] = value


def _double(rng: Random, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder[_similar(rng, key)] = holder[key]
    else:
        # A list or an object is doubled less often, because the values in it may be doubled, too.
        plain = not any(isinstance(each, dict | list) for each in holder[:20])
        holder[:] = (holder * rng.choice((2, 3, 11, 600) if plain else (2, 3)))[:1_000]


def _nest(rng: Random, holder: Any, key: Any) -> None:
    holder[key] = _nested(rng, holder[key])


def _add(rng: Random, holder: Any, _key: Any) -> None:
    if isinstance(holder, dict):
        holder[rng.choice(_TEXTS[:60])] = anything(rng)
    else:
        holder.append(anything(rng))


_MUTATIONS = (_drop, _retype, _retype, _retype, _twist, _twist, _twist, _twist, _rename, _double, _nest, _add)


def mutate(rng: Random, event: Any) -> None:
    places = list(_places(event))
    if places:
        rng.choice(_MUTATIONS)(rng, *rng.choice(places))


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Everything in the event, each with what it is in. Not what is nested deeper than a valid event is."""
    found: list[tuple[Any, Any]] = []
    level = [value]
    for _ in range(8):
        below: list[Any] = []
        for holder in level:
            if len(found) > 200:
                return found
            items = (
                holder.items() if isinstance(holder, dict) else enumerate(holder) if isinstance(holder, list) else ()
            )
            for key, each in items:
                found.append((holder, key))
                if isinstance(each, dict | list):
                    below.append(each)
        level = below
    return found


# How it is sent


def sent(rng: Random, value: Any, *, tampered: float = 0, levels: int = 8) -> Any:
    """With every :class:`JsonText` as text. So many in one of them are tampered with on the way."""
    if not isinstance(value, dict | list) or not levels:
        return value
    if isinstance(value, list):
        return [sent(rng, each, tampered=tampered, levels=levels - 1) for each in value]
    inner = {key: sent(rng, each, tampered=tampered, levels=levels - 1) for key, each in value.items()}
    if not isinstance(value, JsonText):
        return inner
    try:
        text = json.dumps(inner, ensure_ascii=rng.random() < 0.5)
    except RecursionError:
        return "[" * 990 + "]" * 990
    return rng.choice(_TAMPERINGS)(rng, text) if rng.random() < tampered else text


_TAMPERINGS: tuple[Callable[[Random, str], str], ...] = (
    lambda rng, text: text[: rng.randrange(len(text) + 1)],
    lambda rng, text: _twisted(rng, text),
    lambda rng, text: f"{text[:-1]}, {_pair(rng)}}}",
    lambda rng, text: f"{{{_pair(rng)}, {text[1:]}",
    lambda _rng, text: "\ufeff" + text,
    lambda _rng, text: text.replace('"', "'"),
    lambda _rng, text: "[" * 100_000 + text,
    lambda _rng, text: '{"a":' * 900 + text + "}" * 900,
    lambda _rng, text: f"{text} {text}",
    lambda _rng, text: json.dumps(text),
    lambda _rng, text: text + "x" * 1_200_000,
    lambda _rng, text: "\n" * 10 + text + "//",
    lambda _rng, text: text.encode(errors="replace").decode("utf-16", errors="replace"),
    lambda rng, _text: rng.choice(_TEXTS),
)


def _pair(rng: Random) -> str:
    """One more property, or the same once more, with a value that Python reads and JSON does not know."""
    name = rng.choice(
        ("version", "labels", "tenantId", "attempt", "dryRun", "stages", "\\ud800", "\\u0000", "__proto__")
    )
    value = rng.choice(("NaN", "-Infinity", "1e400", "9" * 5_000, '"\\ud800"', '"0.1.0"', "null", "true", "1.0", "-0"))
    return f'"{name}": {value}'


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return type(value)((key, _copied(each)) for key, each in value.items())
    return [_copied(each) for each in value] if isinstance(value, list) else value
