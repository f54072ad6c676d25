"""Rules of generation 1 only: changeable names, owned sessions, metamessages, collections. Shared
rules are in the other modules of `services`.

Callers name all resources by uid. Every service resolves the uids of the path and checks the
caller's permission first.
"""
