"""The settings that `make deploy` chooses by the account's quotas, if nobody has set them."""
