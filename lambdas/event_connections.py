"""Answers to tenants and operators about connections, and to Zapier."""

from __future__ import annotations

from collections.abc import Sequence

from lambdas.event_runtime import use_cases
from lambdas.event_serving import Served, served, served_for
from lambdas.observing import logger
from orchestrator.api import connection_models as models
from orchestrator.api import connection_routes as routes
from orchestrator.api.connection_answers import (
    connection_response,
    connections_response,
    deleted_connection_response,
    issued_connection_response,
    samples_response,
    sent_test_response,
    subscription_response,
    unsubscribed_response,
)
from orchestrator.api.event_configuration_models import NoParameters
from orchestrator.api.fields import or_default
from orchestrator.api.responses import Response
from orchestrator.events.delivery.records import Connection
from orchestrator.events.records import EventSettings


def _list(_request: NoParameters, settings: EventSettings, by: str) -> Response:
    return connections_response(use_cases.configuring_connections(by).list(settings.life))


def _create(request: models.CreateConnection, settings: EventSettings, by: str) -> Response:
    return issued_connection_response(use_cases.configuring_connections(by).create(settings, request.to_domain()))


def _get(request: models.OfConnection, settings: EventSettings, by: str) -> Response:
    return connection_response(use_cases.configuring_connections(by).find(settings.life, request.connection_id))


def _update(request: models.UpdateConnection, settings: EventSettings, by: str) -> Response:
    configuring = use_cases.configuring_connections(by)
    return connection_response(configuring.change(settings.life, request.connection_id, request.to_domain()))


def _pause(request: models.OfConnection, settings: EventSettings, by: str) -> Response:
    return connection_response(use_cases.configuring_connections(by).pause(settings.life, request.connection_id))


def _resume(request: models.OfConnection, settings: EventSettings, by: str) -> Response:
    resumed = use_cases.configuring_connections(by).resume(settings.life, request.connection_id)
    if isinstance(resumed, Connection):
        try:
            use_cases.resending.wake(resumed)
        except Exception:  # noqa: BLE001 - the connection is resumed, and the sweep sends what is parked
            logger.exception("A resumed connection was not woken")
    return connection_response(resumed)


def _rotate(request: models.OfConnection, settings: EventSettings, by: str) -> Response:
    rotated = use_cases.configuring_connections(by).rotate(settings.life, request.connection_id)
    return issued_connection_response(rotated)


def _test(request: models.OfConnection, settings: EventSettings, by: str) -> Response:
    return sent_test_response(use_cases.sending_tests(by).send(settings, request.connection_id))


def _delete(request: models.OfConnection, settings: EventSettings, by: str) -> Response:
    deleted = use_cases.configuring_connections(by).delete(settings.life, request.connection_id)
    return deleted_connection_response(deleted)


def _subscribe(request: models.SubscribeZap, settings: EventSettings, by: str) -> Response:
    configuring = use_cases.configuring_connections(by)
    return subscription_response(configuring.subscribe(settings, request.url, or_default(request.event_type)))


def _unsubscribe(request: models.OfSubscription, settings: EventSettings, by: str) -> Response:
    outcome = use_cases.configuring_connections(by).unsubscribe(settings.life, request.subscription_id)
    return unsubscribed_response(outcome, settings.life.tenant, request.subscription_id)


def _samples(request: models.GetSamples, settings: EventSettings) -> Response:
    return samples_response(use_cases.sampling_events.samples(settings, or_default(request.event_type)))


SERVED: Sequence[Served] = (
    served_for(routes.LIST_CONNECTIONS, _list),
    served_for(routes.CREATE_CONNECTION, _create),
    served_for(routes.GET_CONNECTION, _get),
    served_for(routes.UPDATE_CONNECTION, _update),
    served_for(routes.PAUSE_CONNECTION, _pause),
    served_for(routes.RESUME_CONNECTION, _resume),
    served_for(routes.ROTATE_CONNECTION, _rotate),
    served_for(routes.TEST_CONNECTION, _test),
    served_for(routes.DELETE_CONNECTION, _delete),
    served_for(routes.SUBSCRIBE_ZAP, _subscribe),
    served_for(routes.UNSUBSCRIBE_ZAP, _unsubscribe),
    served(routes.GET_SAMPLES, _samples),
)
