"""What tenants are made from: the committed template of every version, and publishing them."""
