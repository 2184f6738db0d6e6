"""How far a reader's value may be from the source's, and which rows keep it as near (COSMOS 4.1).

`tolerance.py` says what a tolerance allows, `classes.py` decides at a stream's home which rows are
due for whom, `fidelity.py` measures what readers had of it. Pure, and free of the network: the home
of a stream, the reference evaluator and the simulator all call the same functions.
"""
