"""The functions of operations on one tenant."""
