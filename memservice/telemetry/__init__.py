"""What the service tells its operators: events, metrics, logs."""
