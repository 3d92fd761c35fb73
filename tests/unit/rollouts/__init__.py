"""The rules of rollouts, over fakes."""
