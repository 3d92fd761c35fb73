"""The machines and functions that operate on one tenant, and the template of a tenant's stack."""
