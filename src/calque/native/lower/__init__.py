"""Array equations to scalar expressions and index maps."""
