"""Webhooks and forms through the deployed Events API: the bytes that were sent are the bytes that are verified."""

from __future__ import annotations

import hmac
import json
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed
from tests.e2e.events_api import EventsApi
from tests.present import present

TENANT = TenantId("hooked")
SECRET = "It's a Secret to Everybody"


@pytest.fixture(scope="module")
def api(berth: Deployed) -> EventsApi:
    assert berth.settled(TENANT).status == 200
    api = EventsApi(berth, TENANT)
    api.operate("PUT", "/settings", {"plan": "pro"})
    return api


def test_a_webhook_is_verified_accepted_once_and_kept_byte_for_byte(api: EventsApi) -> None:
    created = api.operate("POST", "/sources", {"name": "repository", "provider": "github", "secret": SECRET})
    path = f"/hooks/{created['source_id']}"

    def send(body: bytes, content_type: str, delivery: str, secret: str = SECRET) -> tuple[int, Any]:
        signature = hmac.digest(secret.encode(), body, "sha256").hex()
        status, _, answer = api.send(
            "POST",
            path,
            body,
            Content_Type=content_type,
            X_Hub_Signature_256=f"sha256={signature}",
            X_GitHub_Delivery=delivery,
            X_GitHub_Event="push",
        )
        return status, answer

    bodies = {
        "application/json": b'{"ref": "refs/heads/\xe2\x82\xac"}',
        "application/octet-stream": bytes(range(256)),
        "application/x-www-form-urlencoded": b"payload=%7B%7D",
    }
    for number, (content_type, body) in enumerate(bodies.items()):
        status, answer = send(body, content_type, f"delivery-{number}")
        assert (status, answer["repeated"]) == (200, False)
        event = api.event(answer["event_id"])
        assert present(event.content).body == body
        assert (event.event_type, event.content_type) == ("push", content_type)
    assert send(b"{}", "application/json", "delivery-0")[1]["repeated"] is True
    status, problem = send(b"{}", "application/json", "delivery-9", secret="another secret")
    assert (status, problem["type"]) == (401, "urn:berth:problem:invalid-signature")
    assert api.send("GET", path)[2] == {"status": "listening"}
    assert api.send("POST", "/hooks/src_000000000000000000000000", b"{}")[0] == 404


def test_a_form_is_accepted_and_what_is_no_form_is_refused(api: EventsApi) -> None:
    created = api.operate("POST", "/forms", {"name": "contact", "honeypot": "website"})
    path, html = f"/forms/{created['form_id']}", "application/x-www-form-urlencoded"
    status, _, answer = api.send("POST", path, b"name=Ada+Lovelace&website=", Content_Type=html)
    assert status == 202
    assert json.loads(present(api.event(answer["event_id"]).content).body) == {"name": "Ada Lovelace"}
    assert api.send("POST", path, b"name=robot&website=spam", Content_Type=html)[0] == 202
    assert api.send("POST", path, b"<name/>", Content_Type="application/xml")[0] == 415
    assert api.send("POST", "/forms/form_000000000000000000000000", b"a=1", Content_Type=html)[0] == 404
