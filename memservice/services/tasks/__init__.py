"""Background work as the services see it: what is enqueued, batched, counted and retried."""
