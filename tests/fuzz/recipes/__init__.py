"""Arguments of functions whose parameters depend on each other, by subject."""
