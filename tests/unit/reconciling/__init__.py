"""Reconciling: the records compared with the actual state, over fakes."""
