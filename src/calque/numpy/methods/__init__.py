"""What arrays can do: their methods, attributes and operators."""
