"""More cues of `topics`, a module for each language: other words for a topic, and the things that a
statement names in its place, such as the professions, instruments and illnesses.

They are of the language and of no conversation: a topic has about the same ones in each language.
They are written like those of `topics`; a topic that only stands here has no others.
"""
