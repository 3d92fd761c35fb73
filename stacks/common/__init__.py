"""The building blocks that the constructs of all capabilities share."""
