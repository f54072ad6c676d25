"""Background tasks: creating, batching, counting and retrying them."""
