"""Queries as data: constants of many queries, indexed so that matching costs what it finds.

CACQ's grouped filters and NiagaraCQ's constant tables: an event is looked up among the constants
of all queries of a family at once. `codes` turns values into ranks among the constants, `stabbing`
finds the integer ranges that hold a rank, `constants` puts several expressions together.
"""
