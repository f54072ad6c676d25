"""Import of histories: memories and conversations that other systems exported.

A format reads a file into items (`items`). `conversion` turns these into the lines of an export of
this service, in temporary files, with uids that depend on the ids in the file. So the whole file is
checked before anything is stored, an import can be repeated, and `importing` stores it like any
other export.
"""
