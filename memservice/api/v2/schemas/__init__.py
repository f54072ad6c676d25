"""Shapes that the second generation has to itself. They are read as what the newest one reads, so
that its handlers understand them."""
