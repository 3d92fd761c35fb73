"""The operator's identity, the control plane, and the look of pages. A cookie of the browser keeps the choices."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.common.own_versions import berth_version
from orchestrator.console.guard import SETTINGS
from orchestrator.console.page import page
from orchestrator.console.view import THEMES, TIMES, Look
from orchestrator.console.visit import LOOK_COOKIE, Console, Visit

_YEAR = 365 * 24 * 3600


def settings(visit: Visit) -> Response:
    return visit.show("settings.html", times=TIMES, themes=THEMES, version=berth_version())


def change(visit: Visit) -> Response:
    look = Look.parse(f"{visit.form.get('times', '')}.{visit.form.get('theme', '')}")
    answer = visit.go_to(SETTINGS, "Your settings are kept in this browser.")
    answer.set_cookie(LOOK_COOKIE, str(look), max_age=_YEAR, httponly=True, samesite="strict")
    return answer


def routes(console: Console) -> list[Route]:
    return [page(console, SETTINGS, settings), page(console, SETTINGS, change, method="POST")]
