"""The functions that look after one tenant."""
