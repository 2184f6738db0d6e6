"""The algebra that all layers speak: operators, windows, predicates, profiles, rewrite rules.

Pure data and pure functions. Imports nothing else of Thalweg.
"""
