"""The functions that settle operations of dead executions, and repair differences between table and stacks."""
