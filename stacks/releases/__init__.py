"""The committed release: the tenants' template of version.txt with its notes, and the construct that publishes it."""
