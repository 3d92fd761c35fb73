"""What all tests share. Property tests are the same at every run: what fails once fails again."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("berth", derandomize=True, deadline=None, database=None, max_examples=100)
settings.load_profile("berth")

# Whatever account this shell is set up for, no test may depend on it or talk to it.
for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]
