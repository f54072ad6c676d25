"""Export and import of a workspace as a file of JSON lines, on any storage.

The first line is the header, the only line about the export itself; the last contains the number of
the others and their checksum. Between them are the rows, one kind after the other, parents before
children, each kind in the order of storage. That is the order of listings: times alone do not
determine it, and the copy must preserve it. Lines refer to rows by uid, never by a storage's own
keys, so a workspace and its copy export the same lines on any storage.
"""
