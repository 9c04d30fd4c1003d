"""`python -m calque`: runs a program written for JAX."""

import sys

from calque.compat.running import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
