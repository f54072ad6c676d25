"""Events for operators: their emission, and the wiring of a process."""
