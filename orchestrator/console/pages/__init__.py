"""The pages, one module each, with one template each. Every module has ``routes(console)``."""
