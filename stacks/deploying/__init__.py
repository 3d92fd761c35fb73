"""What `make deploy` chooses where nobody has set it, because it depends on the account."""
