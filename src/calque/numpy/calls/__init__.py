"""Library functions and operators on the call path."""
