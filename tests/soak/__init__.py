"""What CI does a few times, by the thousand: `python -m tests.soak`."""
