"""The machines and functions that look after one tenant, and what a tenant gets."""
