"""The code in docs/webhook-receivers.md that checks signatures: every example accepts and refuses the same."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.events.delivery.signing import new_signing_secret, signature_headers

ROOT = Path(__file__).parents[3]
SECTION = (
    (ROOT / "docs" / "webhook-receivers.md")
    .read_text(encoding="utf-8")
    .partition("## Checking the signature")[2]
    .partition("\n## ")[0]
)
PYTHON_EXAMPLES = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
(NODE_EXAMPLE,) = re.findall(r"```js\n(.*?)```", SECTION, re.DOTALL)
_ASKING = """
const given = JSON.parse(require("node:fs").readFileSync(0));
console.log(JSON.stringify(given.map((each) =>
  isFromBerth(each.secret, each.headers, Buffer.from(each.body, "base64")))));
"""
SECRET = new_signing_secret()
BODY = '{"total": 1.50, "name": "Ä"}'.encode()


@dataclass(frozen=True)
class Request:
    headers: Mapping[str, str]
    body: bytes
    secret: str = SECRET

    def without(self, header: str) -> Request:
        return replace(self, headers={name: value for name, value in self.headers.items() if name != header})

    def having(self, header: str, value: str) -> Request:
        return replace(self, headers={**self.headers, header: value})


def signed(*secrets: str, body: bytes = BODY, age: timedelta = timedelta()) -> Request:
    # The examples compare with the clock of the machine.
    return Request(signature_headers("msg_1", body, secrets or (SECRET,), datetime.now(UTC) - age), body)


def real() -> dict[str, Request]:
    """Signed now, and not when the tests are collected, which may be minutes before."""
    return {
        "as Berth signs it": signed(),
        "with two signatures, the second fits": signed(new_signing_secret(), SECRET),
        "without a payload": signed(body=b""),
        "four minutes old": signed(age=timedelta(minutes=4)),
    }


def forged() -> dict[str, Request]:
    return {
        "another body": replace(signed(), body=BODY.replace(b"1.50", b"1.5")),
        "another secret": signed(new_signing_secret()),
        "another id": signed().having("webhook-id", "msg_2"),
        "another time": signed().having("webhook-timestamp", str(int(datetime.now(UTC).timestamp()) + 1)),
        "too old": signed(age=timedelta(minutes=6)),
        "too new": signed(age=-timedelta(minutes=6)),
        "no signature": signed().without("webhook-signature"),
        "no time": signed().without("webhook-timestamp"),
        "no id": signed().without("webhook-id"),
        "a signature that is none": signed().having("webhook-signature", "v1,Ä v1, v1 ,"),
        "a signature of another version": signed().having(
            "webhook-signature", signed().headers["webhook-signature"].replace("v1,", "v2,")
        ),
        "no headers": Request({}, BODY),
    }


def requests() -> dict[str, Request]:
    return real() | forged()


def in_python(example: str) -> dict[str, bool]:
    names: dict[str, Any] = {}
    exec(example, names)
    return {
        name: names["is_from_berth"](each.secret, dict(each.headers), each.body) for name, each in requests().items()
    }


def in_node() -> dict[str, bool]:
    asked = requests()
    given = [
        {"secret": each.secret, "headers": dict(each.headers), "body": base64.b64encode(each.body).decode()}
        for each in asked.values()
    ]
    done = subprocess.run(
        ["node", "--eval", NODE_EXAMPLE + _ASKING], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(asked, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize(
    "answers",
    [lambda: in_python(PYTHON_EXAMPLES[0]), lambda: in_python(PYTHON_EXAMPLES[1]), in_node],
    ids=["Python with the library", "Python alone", "Node alone"],
)
def test_an_example_accepts_what_berth_signs_and_refuses_everything_else(
    answers: Callable[[], dict[str, bool]],
) -> None:
    assert answers() == dict.fromkeys(real(), True) | dict.fromkeys(forged(), False)


def test_one_python_example_uses_the_library_and_the_other_does_not() -> None:
    with_library, alone = PYTHON_EXAMPLES
    assert "standardwebhooks" in with_library
    assert "standardwebhooks" not in alone
