"""The machine and functions that move the fleet."""
