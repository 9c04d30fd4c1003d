"""What is done to programs: differentiation, batching, control flow, calls, custom rules,
rematerialisation, callbacks."""
