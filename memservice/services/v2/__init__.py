"""What only generation 2 of the API has."""
