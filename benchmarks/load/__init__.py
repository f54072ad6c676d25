"""What requests cost over HTTP, beside a bare Flask application on the same machine."""
