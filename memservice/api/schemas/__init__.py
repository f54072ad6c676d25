"""The shapes of requests and answers: one marshmallow schema each, from which parsing, documents and encoders are made."""
