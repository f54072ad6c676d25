"""`python -m memservice`."""

from memservice.cli import main

main()
