"""The simulation of rollouts over a fleet: its executions, faults, checks and planted bugs."""
