"""The function that publishes releases."""
