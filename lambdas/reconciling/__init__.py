"""The functions that find what died and what differs."""
