"""Commands for operators that look at the whole store."""
