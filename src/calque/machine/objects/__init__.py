"""The C type of arrays, and the structs of the Python interpreter that it is made of."""
