"""A cluster that runs D-CAPE's query: machines are modelled, joins, windows and state are real."""
