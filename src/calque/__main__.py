"""`python -m calque`: runs a program written for JAX, and says what becomes of programs."""

import sys

from calque.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
