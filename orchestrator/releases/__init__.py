"""What tenants are made from."""
