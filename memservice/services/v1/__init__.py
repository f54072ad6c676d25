"""The first generation's own rules: names that change, owned sessions, metamessages, collections.
What it shares with the others is theirs.

Its callers name everything by uid. Every service looks up what the path names, asks who may, and
only then does anything.
"""
