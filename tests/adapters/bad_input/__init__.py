"""Bad input at every edge: whatever comes in is understood or refused, and what is refused leaves no trace."""
