"""The functions, events and schedules that end what died and find what differs."""
