"""The event plane, simulated: its table, its stream, its queues, its receivers, and everything that fails."""
