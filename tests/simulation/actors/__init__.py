"""Everybody who calls Berth: operators, platforms, other teams' stacks and an adversary."""
