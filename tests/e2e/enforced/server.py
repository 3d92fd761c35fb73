"""The emulator's process with permissions enforced, started like ``orchestrator.local.server``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

LOG = "decisions.jsonl"


def over_tls(emulator: Any) -> Any:
    """Make policies see every request as encrypted (``aws:SecureTransport``), as it is on AWS."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        encrypted = {**scope, "scheme": "https"} if scope["type"] == "http" else scope
        await emulator(encrypted, receive, send)

    return app


def main(root: str, port: str, keep_state: str) -> None:
    # Ministack reads this on import.
    os.environ["AUTH"] = "true"

    from orchestrator.local import server
    from tests.e2e.enforced import evaluation, service_roles
    from tests.e2e.enforced.decisions import DecisionLog

    log, operators, tokens = DecisionLog(Path(root) / LOG), service_roles.Operators(), service_roles.Tokens()
    evaluation.install(log, operators, tokens)
    service_roles.install(log, operators, tokens)
    server.main(root, port, keep_state, wrapped=over_tls)


if __name__ == "__main__":
    main(*sys.argv[1:])
