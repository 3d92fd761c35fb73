"""The functions behind the API."""
