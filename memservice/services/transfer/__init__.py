"""Moving house: a workspace as a file of JSON lines, and back, on any storage.

The first line is the header, the only one that says anything about this export; the last counts the
others and holds their checksum. Between them stand the rows of one kind after the other, parents
before children, each kind in the order in which its rows were stored: the order of listings, which
times alone do not tell and which the copy has to keep. Rows are named by uid, never by a storage's
own keys, so a workspace and its copy export the same lines, whatever they lie on.
"""
