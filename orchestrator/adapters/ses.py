"""Mail by Amazon SES."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code
from orchestrator.events.delivery.answers import Failure
from orchestrator.events.delivery.mail import Mail

_SLOW_DOWN = frozenset({"TooManyRequestsException", "LimitExceededException", "ThrottlingException", "Throttling"})
_REFUSED = frozenset({"MessageRejected", "BadRequestException"})
_NOT_SENDING = frozenset(
    {
        "AccountSuspendedException",
        "MailFromDomainNotVerifiedException",
        "NotFoundException",
        "SendingPausedException",
    }
)


class SesMails:
    """Implements :class:`orchestrator.events.delivery.ports.Mails`. The client is made when it is needed.

    ``sender`` is the address that mail comes from. Without it, no mail is sent. SES reports mails that came back for
    those that have a configuration set.
    """

    def __init__(
        self, make_client: Callable[[], Any], sender: str | None, *, configuration_set: str | None = None
    ) -> None:
        self._make_client = make_client
        self._sender = sender
        self._configuration_set = configuration_set

    @cached_property
    def _client(self) -> Any:
        return self._make_client()

    def send(self, mail: Mail) -> Failure | None:
        if self._sender is None:
            return Failure("Berth sends no mail here. An operator can switch it on.")
        try:
            self._client.send_email(
                FromEmailAddress=self._sender,
                Destination={"ToAddresses": [mail.to]},
                Content={
                    "Simple": {
                        "Subject": _text(mail.subject),
                        "Body": {"Text": _text(mail.text)},
                        "Headers": [{"Name": name, "Value": value} for name, value in mail.headers.items()],
                    }
                },
                **self._reported(mail),
            )
        except ClientError as error:
            return _failure(error)
        return None

    def _reported(self, mail: Mail) -> dict[str, Any]:
        if self._configuration_set is None:
            return {}
        tags = [{"Name": name, "Value": value} for name, value in mail.tags.items()]
        return {"ConfigurationSetName": self._configuration_set, "EmailTags": tags}


def _text(text: str) -> dict[str, str]:
    return {"Data": text, "Charset": "UTF-8"}


def _failure(error: ClientError) -> Failure:
    """SES's own message may name the account, so the tenant does not see it. Raises what only an operator can help."""
    match error_code(error):
        case code if code in _SLOW_DOWN:
            return Failure("Berth has sent as much mail as SES allows now.", slows=True)
        case code if code in _REFUSED:
            return Failure("SES refused the mail. Check the address; a new account sends to verified addresses only.")
        case code if code in _NOT_SENDING:
            return Failure("SES sends no mail of this account now.")
    raise error
