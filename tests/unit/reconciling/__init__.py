"""What is recorded against what is true, over fakes."""
