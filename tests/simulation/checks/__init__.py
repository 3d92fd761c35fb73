"""The promises: invariants at every call, and what has to be true once everything has ended."""
