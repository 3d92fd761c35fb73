"""What all tests share. Property tests are the same at every run: what fails once fails again."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("berth", derandomize=True, deadline=None, database=None, max_examples=100)
settings.load_profile("berth")
