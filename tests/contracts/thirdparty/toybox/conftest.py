"""A report at the end: what was declared, what was left out for lack of it."""

pytest_plugins = ["memservice.testing.report"]
