"""The functions of the event plane."""
