"""The control plane in every state, as the tests of its document ask it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from types import ModuleType

import pytest
import requests

from stacks.common.function_code import module_of
from tests.functions import forget_functions
from tests.unit.openapi.world import BASE_URL, InProcess, world


@pytest.fixture(scope="module")
def functions() -> Iterator[Mapping[str, ModuleType]]:
    """The functions, loaded anew: they read their settings and find their use cases as they are loaded."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("BERTH_SERVICE", "berth")
        monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "FATAL")
        forget_functions()
        runtime = importlib.import_module("lambdas.runtime")
        monkeypatch.setattr(runtime, "use_cases", world())
        monkeypatch.setattr(importlib.import_module("lambdas.observing"), "count", lambda _metric: None)
        yield {name: importlib.import_module(module_of(name)) for name in ("get_queue", "operators")}
        forget_functions()


@pytest.fixture
def gateway(functions: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    return InProcess(functions, monkeypatch)


@pytest.fixture
def session(gateway: InProcess) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        session.mount(BASE_URL, gateway)
        yield session
