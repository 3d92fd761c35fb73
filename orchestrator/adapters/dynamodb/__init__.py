"""The one table: keys, rows, and one module a capability."""
