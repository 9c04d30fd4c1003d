"""Programs as shared libraries for programs that know no Python: planned as any other program, and
written with all that runs them (`machine.code.shared_object`)."""
