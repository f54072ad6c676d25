"""memservice: self-hosted long-term memory for software agents."""

__version__ = "0.1.0"
