"""The environment of the event plane's functions in measurements."""

from __future__ import annotations

from orchestrator.common.callers import digest_of

TABLE = "bench"
EVENTS_TABLE = "bench-events"
BUCKET = "bench-contents"
PROOF = "bench"
FUNCTION_ENVIRONMENT = {
    "BERTH_TABLE": TABLE,
    "BERTH_EVENTS_TABLE": EVENTS_TABLE,
    "BERTH_CONTENTS_BUCKET": BUCKET,
    "BERTH_EVENTS_ENVIRONMENT": "test",
    "BERTH_API_PROOF_DIGEST": digest_of(PROOF),
    "BERTH_SERVICE": "ingest",
    "BERTH_METRICS_NAMESPACE": "Berth",
    "AWS_DEFAULT_REGION": "us-east-1",
}
