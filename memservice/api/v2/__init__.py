"""The second generation: `/v2`."""
