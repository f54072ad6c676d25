"""Schemas of generation 2 only. Their results have the form of the newest generation's schemas, so
that its handlers can use them."""
