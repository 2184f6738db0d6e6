"""Which queries are really one: signatures, containment, groups, predicate indexes.

Pure. Imports `plan` only.
"""
