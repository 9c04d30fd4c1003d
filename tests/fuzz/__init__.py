"""Random programs drawn from the whole public interface by its signatures, run in every way that
must give the same result. `python -m tests.fuzz --help`."""
