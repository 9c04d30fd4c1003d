"""Small libraries of layers and optimizers, to learn from and to try things with."""
