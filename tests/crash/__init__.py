"""What might bring a process down: each case in a process of its own. It ends with a Python
exception or a right result, and the next call is right."""
