"""HTTP: what is asked for, and what is answered."""
