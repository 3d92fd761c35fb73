"""Lets functions read the streams of tables after a restart.

The emulator saves how far each function has read a stream, but not the records of the stream. After a restart, a
function would not see a record until there are as many new ones as it had read before.
"""

from typing import Any


def begin_streams_anew() -> None:
    """Patch the emulator in this process, before it restores its state."""
    from ministack.services import lambda_svc  # type: ignore[import-untyped]

    restore = lambda_svc._restore_esm_positions

    def restore_and_begin_anew(store: Any, positions: Any) -> None:
        restore(store, positions)
        if store is lambda_svc._dynamodb_stream_positions:
            for key in list(store._data):
                store._data[key] = 0

    lambda_svc._restore_esm_positions = restore_and_begin_anew
