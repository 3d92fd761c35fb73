"""The HTTP API, and the policies for its callers."""
