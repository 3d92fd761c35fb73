"""Code that the event plane's functions share: the use cases, and the frame of those that answer over HTTP."""

from __future__ import annotations

from orchestrator.adapters.event_ports import AwsEventPorts
from orchestrator.adapters.settings import Settings
from orchestrator.event_composition import EventUseCases

use_cases = EventUseCases(AwsEventPorts(Settings()))
