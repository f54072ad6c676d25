"""Reads the text of language models, whatever form they give it: pure functions."""
