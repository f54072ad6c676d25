"""Moving house: a workspace as a file of JSON lines, and back, on any storage.

The first line is the header, the only one that says anything about this export; the last counts the others and holds their checksum.
Between them stand the rows of one kind after the other, parents before children, each kind in the order in which its rows were stored:
the order by which equal times are told apart in listings, which the copy has to keep. Rows are named by uid, never by a storage's own
keys, so two exports of equal workspaces are equal, whatever they lie on.
"""
