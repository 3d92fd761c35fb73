"""The routes for connections, and for Zapier's REST hooks. Operators have the same routes for any tenant."""

from __future__ import annotations

from orchestrator.api.connection_models import (
    Connection,
    Connections,
    CreateConnection,
    DeletedConnection,
    GetSamples,
    IssuedConnection,
    OfConnection,
    OfSubscription,
    Samples,
    SentTest,
    SubscribeZap,
    Subscription,
    TroubledConnections,
    UpdateConnection,
)
from orchestrator.api.event_configuration_models import NoParameters
from orchestrator.api.event_problems import (
    CONNECTION_DISABLED,
    LIMIT_REACHED,
    NO_SUCH_CONNECTION,
    NO_SUCH_FORM,
    NO_SUCH_SOURCE,
    NOT_SIGNED,
    UNSUPPORTED_TYPE,
)
from orchestrator.api.event_routes import BY_KEY
from orchestrator.api.for_operators import for_operators
from orchestrator.api.problems import INVALID_REQUEST, NOT_THROUGH_THE_API, TRY_AGAIN
from orchestrator.api.route import NO_STORE, Answer, AnyRoute, Audience, Rate, Route
from orchestrator.events.configuring_connections import MAX_PER_ORIGIN, MAX_PER_TENANT
from orchestrator.events.delivery.signing import ROTATION_OVERLAP
from orchestrator.events.records import Scope

_WITH_BODY = (*BY_KEY, UNSUPPORTED_TYPE)

LIST_CONNECTIONS: Route[NoParameters, Connections] = Route(
    name="listConnections",
    method="GET",
    path="/connections",
    audience=Audience.TENANT,
    scope=Scope.READ,
    rate=Rate.EVENT_READS,
    summary="List the connections",
    request=NoParameters,
    answers=(Answer(200, Connections, "The connections."),),
    problems=BY_KEY,
)
CREATE_CONNECTION: Route[CreateConnection, IssuedConnection] = Route(
    name="createConnection",
    method="POST",
    path="/connections",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Connect events to a destination",
    description="By default, events that are sent to POST /events go to the tenant's own queue. There are at most "
    f"{MAX_PER_ORIGIN} connections per origin and {MAX_PER_TENANT} per tenant.",
    request=CreateConnection,
    answers=(Answer(201, IssuedConnection, "The new connection.", (NO_STORE,)),),
    problems=(*_WITH_BODY, NO_SUCH_SOURCE, NO_SUCH_FORM, LIMIT_REACHED),
)
GET_CONNECTION: Route[OfConnection, Connection] = Route(
    name="getConnection",
    method="GET",
    path="/connections/{connectionId}",
    audience=Audience.TENANT,
    scope=Scope.READ,
    rate=Rate.EVENT_READS,
    summary="Get one connection",
    request=OfConnection,
    answers=(Answer(200, Connection, "The connection."),),
    problems=(*BY_KEY, NO_SUCH_CONNECTION),
)
UPDATE_CONNECTION: Route[UpdateConnection, Connection] = Route(
    name="updateConnection",
    method="PUT",
    path="/connections/{connectionId}",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Change a connection",
    description="The change takes effect within 10 seconds, also for deliveries that wait for another try.",
    request=UpdateConnection,
    answers=(Answer(200, Connection, "The connection as it is now."),),
    problems=(*_WITH_BODY, NO_SUCH_CONNECTION),
)
PAUSE_CONNECTION: Route[OfConnection, Connection] = Route(
    name="pauseConnection",
    method="POST",
    path="/connections/{connectionId}/pause",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Pause a connection",
    description="Within 10 seconds, its deliveries wait. They are sent when it is resumed, unless the events have "
    "expired by then.",
    request=OfConnection,
    answers=(Answer(200, Connection, "The connection is paused."),),
    problems=(*_WITH_BODY, NO_SUCH_CONNECTION, CONNECTION_DISABLED),
)
RESUME_CONNECTION: Route[OfConnection, Connection] = Route(
    name="resumeConnection",
    method="POST",
    path="/connections/{connectionId}/resume",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Resume a connection",
    description="Deliveries that waited are sent, those of the oldest events first. A disabled connection begins "
    "anew; its failed deliveries stay failed. If it sends mail, only an operator can resume or pause it.",
    request=OfConnection,
    answers=(Answer(200, Connection, "The connection delivers."),),
    problems=(*_WITH_BODY, NO_SUCH_CONNECTION, CONNECTION_DISABLED),
)
ROTATE_CONNECTION: Route[OfConnection, IssuedConnection] = Route(
    name="rotateConnection",
    method="POST",
    path="/connections/{connectionId}/rotate",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Replace the signing secret of a webhook",
    description=f"For {ROTATION_OVERLAP.days * 24} hours deliveries carry two signatures, so that the receiver "
    "accepts them with either secret. Another rotation within this time ends the older secret at once.",
    request=OfConnection,
    answers=(Answer(201, IssuedConnection, "The connection with its new secret.", (NO_STORE,)),),
    problems=(*_WITH_BODY, NO_SUCH_CONNECTION, NOT_SIGNED),
)
TEST_CONNECTION: Route[OfConnection, SentTest] = Route(
    name="testConnection",
    method="POST",
    path="/connections/{connectionId}/test",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Send a test event to one connection",
    description="An event of type berth.test is sent to this connection alone, whatever its filter says. Its attempts "
    "are on record like those of any other event.",
    request=OfConnection,
    answers=(Answer(202, SentTest, "The test event was accepted."),),
    problems=(*_WITH_BODY, NO_SUCH_CONNECTION, CONNECTION_DISABLED, LIMIT_REACHED),
)
DELETE_CONNECTION: Route[OfConnection, DeletedConnection] = Route(
    name="deleteConnection",
    method="DELETE",
    path="/connections/{connectionId}",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Delete a connection",
    description="Within 10 seconds, nothing is sent any more. Deliveries that are not finished fail.",
    request=OfConnection,
    answers=(Answer(200, DeletedConnection, "The connection is deleted."),),
    problems=(*BY_KEY, NO_SUCH_CONNECTION),
)

SUBSCRIBE_ZAP: Route[SubscribeZap, Subscription] = Route(
    name="subscribeZap",
    method="POST",
    path="/zapier/hooks",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Subscribe a Zap",
    description="Zapier calls this when a Zap is switched on. To subscribe the same URL to the same type again "
    "answers with the first subscription.",
    request=SubscribeZap,
    answers=(Answer(201, Subscription, "The subscription."),),
    problems=(*_WITH_BODY, LIMIT_REACHED),
)
UNSUBSCRIBE_ZAP: Route[OfSubscription, DeletedConnection] = Route(
    name="unsubscribeZap",
    method="DELETE",
    path="/zapier/hooks/{subscriptionId}",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Unsubscribe a Zap",
    description="Zapier calls this when a Zap is switched off. To unsubscribe again changes nothing.",
    request=OfSubscription,
    answers=(Answer(200, DeletedConnection, "There is no such subscription any more."),),
    problems=(*BY_KEY, NO_SUCH_CONNECTION),
)
GET_SAMPLES: Route[GetSamples, Samples] = Route(
    name="getZapierSamples",
    method="GET",
    path="/zapier/sample",
    audience=Audience.TENANT,
    scope=Scope.READ,
    rate=Rate.EVENT_READS,
    summary="Get samples of payloads for Zapier",
    description="Zapier shows them to people who make a Zap, so that they see the fields that it will get.",
    request=GetSamples,
    answers=(Answer(200, Samples, "The samples."),),
    problems=BY_KEY,
)

LIST_TROUBLES: Route[NoParameters, TroubledConnections] = Route(
    name="listTroubledConnections",
    method="GET",
    path="/troubled-connections",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="List connections of all tenants whose deliveries fail or wait",
    request=NoParameters,
    answers=(Answer(200, TroubledConnections, "The connections."),),
    problems=(INVALID_REQUEST, NOT_THROUGH_THE_API, TRY_AGAIN),
)

TENANT_ROUTES: tuple[AnyRoute, ...] = (
    LIST_CONNECTIONS,
    CREATE_CONNECTION,
    GET_CONNECTION,
    UPDATE_CONNECTION,
    PAUSE_CONNECTION,
    RESUME_CONNECTION,
    ROTATE_CONNECTION,
    TEST_CONNECTION,
    DELETE_CONNECTION,
    SUBSCRIBE_ZAP,
    UNSUBSCRIBE_ZAP,
    GET_SAMPLES,
)
"""The routes of tenants. Each has a route for operators."""

ROUTES: tuple[AnyRoute, ...] = (*TENANT_ROUTES, *map(for_operators, TENANT_ROUTES), LIST_TROUBLES)
