"""Golden files: the output of every command, the text of every page, and both APIs. See README.md."""
