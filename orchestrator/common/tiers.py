"""The names of tiers. Every release belongs to one tier, and so does every tenant."""

from __future__ import annotations

STANDARD = "standard"
"""The tier of the releases that come with Berth, and of rows from before Berth."""

TIER_PATTERN = "^[a-z][a-z0-9-]{0,23}$"
NOT_A_TIER = "is not the name of a tier: 1 to 24 lower case letters, digits and dashes, of which the first is a letter"
"""The end of the message about a text that does not match."""
