"""Transforms: how a connection changes a payload before it is sent. They are data; no code of a tenant is run.

    {"remove": ["customer.card"], "rename": {"total": "amount"}, "set": {"currency": "EUR"}, "wrap": "order"}

The steps are applied in this order: remove, rename, set, wrap. A path goes into objects by their keys, separated by
dots. A path that leads nowhere changes nothing; ``set`` makes the objects that are missing on its way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orchestrator.common.errors import InvalidRequest

MAX_STEPS = 50
MAX_PATH = 256
MAX_PATH_KEYS = 16
MAX_BYTES = 8_192
"""The size of a transform, as JSON."""
_STEPS = ("remove", "rename", "set", "wrap")


def transformed(document: Mapping[str, Any], payload: object) -> object:
    """The payload that is sent. The given one stays as it is. A payload that is not an object is only wrapped."""
    changed: Any = json.loads(json.dumps(payload))
    if isinstance(changed, dict):
        for path in document.get("remove", []):
            _take(changed, path)
        for path, to in document.get("rename", {}).items():
            _rename(changed, path, to)
        for path, value in document.get("set", {}).items():
            _set(changed, path, value)
    return {document["wrap"]: changed} if "wrap" in document else changed


_NOTHING = object()


def _holder(payload: dict[str, Any], path: str) -> tuple[dict[str, Any] | None, str]:
    """The object that the last key of the path is in, and that key."""
    *keys, last = path.split(".")
    holder: Any = payload
    for key in keys:
        holder = holder.get(key) if isinstance(holder, dict) else None
    return (holder if isinstance(holder, dict) else None), last


def _take(payload: dict[str, Any], path: str) -> Any:
    holder, key = _holder(payload, path)
    return _NOTHING if holder is None else holder.pop(key, _NOTHING)


def _rename(payload: dict[str, Any], path: str, to: str) -> None:
    """The value stays in its object under another key."""
    holder, key = _holder(payload, path)
    if holder is not None and key in holder:
        holder[to] = holder.pop(key)


def _set(payload: dict[str, Any], path: str, value: Any) -> None:
    *keys, last = path.split(".")
    holder = payload
    for key in keys:
        inner = holder.get(key)
        if not isinstance(inner, dict):
            inner = holder[key] = {}
        holder = inner
    holder[last] = value


def check_transform(document: object) -> None:
    """Raises :class:`InvalidRequest` if the document is not a transform."""
    if not isinstance(document, dict):
        raise _invalid("it is not an object")
    if unknown := [name for name in document if name not in _STEPS]:
        raise _invalid(f"there is no step {unknown[0][:40]!a}. The steps are {', '.join(_STEPS)}")
    remove, rename, values = (
        document.get(name, default) for name, default in (("remove", []), ("rename", {}), ("set", {}))
    )
    if not isinstance(remove, list) or not isinstance(rename, dict) or not isinstance(values, dict):
        raise _invalid("remove is a list of paths; rename and set are objects")
    for path in (*remove, *rename, *values):
        _check_path(path)
    for name in (*rename.values(), *([document["wrap"]] if "wrap" in document else [])):
        if not isinstance(name, str) or not 0 < len(name) <= MAX_PATH or "." in name:
            raise _invalid("a new name is a text without dots")
    if len(remove) + len(rename) + len(values) > MAX_STEPS:
        raise _invalid(f"it has more than {MAX_STEPS} steps")
    if len(json.dumps(document)) > MAX_BYTES:
        raise _invalid(f"it is larger than {MAX_BYTES} bytes")


def _check_path(path: object) -> None:
    keys = path.split(".") if isinstance(path, str) else []
    if not all(keys) or not 0 < len(keys) <= MAX_PATH_KEYS or len(str(path)) > MAX_PATH:
        raise _invalid(f"a path is at most {MAX_PATH_KEYS} keys, separated by dots")


def _invalid(why: str) -> InvalidRequest:
    return InvalidRequest(f"transform: {why}.")
