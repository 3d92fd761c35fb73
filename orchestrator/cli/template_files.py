"""Reading the template that an operator wants to publish: a file, or the folder that `cdk synth` has written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.input_limits import MAX_LEVELS, check_can_be_handled
from orchestrator.releases.template_contract import MAX_TEMPLATE_BYTES

_STACK = "aws:cloudformation:stack"
_MANIFEST = "manifest.json"


def read_template(path: Path, stack: str | None = None) -> dict[str, Any]:
    """The template in the file, or of the stack in the folder of the CDK."""
    if _is_folder(path):
        return _json(path / _template_file(path, stack))
    if stack is not None:
        raise InvalidRequest(f"{path} is no folder of the CDK, so it has no stack {stack!a}.")
    return _json(path)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"{str(path)[:100]!a} cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from None


def _template_file(folder: Path, wanted: str | None) -> str:
    if not (folder / _MANIFEST).is_file():
        raise InvalidRequest(f"{folder} has no {_MANIFEST}: name a template, or the folder that cdk synth has written.")
    artifacts = _json(folder / _MANIFEST).get("artifacts")
    stacks = {
        name: _file_of(artifact)
        for name, artifact in (artifacts if isinstance(artifacts, dict) else {}).items()
        if isinstance(artifact, Mapping) and artifact.get("type") == _STACK
    }
    if wanted is not None and wanted in stacks:
        return stacks[wanted]
    if wanted is None and len(stacks) == 1:
        return next(iter(stacks.values()))
    named = ", ".join(sorted(stacks)) or "none"
    raise InvalidRequest(f"Name the stack of {folder} whose template is meant, with --template-stack. It has: {named}.")


def _file_of(artifact: Mapping[str, Any]) -> str:
    properties = artifact.get("properties")
    name = properties.get("templateFile") if isinstance(properties, Mapping) else None
    return name if isinstance(name, str) else ""


def _json(file: Path) -> dict[str, Any]:
    try:
        # Nothing longer can be published, and a wrong file may be of any size.
        with file.open("rb") as opened:
            content = opened.read(2 * MAX_TEMPLATE_BYTES + 1)
        if len(content) > 2 * MAX_TEMPLATE_BYTES:
            raise InvalidRequest(
                f"{file} is too long for a template: CloudFormation takes {MAX_TEMPLATE_BYTES:,} bytes."
            )
        document = json.loads(content)
    except OSError as error:
        raise InvalidRequest(f"{str(file)[:200]} cannot be read: {error.strerror or error}.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise InvalidRequest(f"{file} is not JSON ({where}). Write the template as JSON; cdk synth does.") from None
    except RecursionError:
        raise InvalidRequest(
            f"{file}: the value is nested too deeply. A template has at most {MAX_LEVELS} levels."
        ) from None
    except ValueError:
        raise InvalidRequest(f"{file} is not JSON. Write the template as JSON; cdk synth does.") from None
    if not isinstance(document, dict):
        raise InvalidRequest(f"{file} is not a template: it has no JSON object.")
    check_can_be_handled(document, str(file))
    return document
