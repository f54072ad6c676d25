"""Text: folding, analysis, names, dates and pieces."""
