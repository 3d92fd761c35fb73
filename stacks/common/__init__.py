"""What every capability's constructs are made with."""
