"""What language models write, read right whatever the model does: pure functions over its text."""
