"""The machine and the functions that move the fleet to a release."""
