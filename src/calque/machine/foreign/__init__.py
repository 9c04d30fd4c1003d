"""Functions of other libraries, by the interface of XLA's foreign functions: what such a function
is called with, and what it may ask of who calls it."""
