"""Reading the text of uploaded files."""
