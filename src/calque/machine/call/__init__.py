"""The call path: machine code that recognises the arguments of a call and runs what was compiled
for them."""
