"""Berth over HTTP, and who may call it."""
