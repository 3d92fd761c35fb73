"""The control plane's one table: its keys and rows, and one module per capability that uses them."""
