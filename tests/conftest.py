"""Settings of all tests. Property tests try the same examples in every run, so a failure repeats."""

from __future__ import annotations

import gc
import os

from hypothesis import settings

settings.register_profile("berth", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("berth")

# No test may use the account of this shell.
for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]

# The CDK's own check of templates takes half of every synthesis, and its findings are only warnings. Templates are
# checked by cdk-nag and cfn-lint. Set this before the CDK is imported.
os.environ["CDK_VALIDATION"] = "false"


def pytest_collection_finish() -> None:
    """Keep the collected tests out of every later garbage collection: it takes a quarter of the time of short tests."""
    gc.collect()
    gc.freeze()
