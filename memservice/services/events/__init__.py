"""Events for operators: what is emitted, and how a process is wired to emit it."""
