"""The functions, events and schedules that close operations that died, and compare the table with the stacks."""
