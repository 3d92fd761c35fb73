"""The functions of rollouts."""
