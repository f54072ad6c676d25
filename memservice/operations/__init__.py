"""Commands for operators that work on the whole store."""
