"""What the plugins that reach models over HTTP share. A library beside them: it offers nothing
itself, and importing it loads no HTTP.

`place` is the schema of the settings that each is opened with, `client` one bounded exchange,
`failures` what becomes of every way in which it can go wrong, `sse` the reading of streams, `chat`
what is alike in conversations, `embedder` what is alike in embedding.
"""
