"""The committed tenant template of every version, and the construct that publishes them."""
