"""The functions that move the fleet."""
