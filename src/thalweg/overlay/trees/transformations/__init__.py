"""The six transformations of a dissemination tree (COSMOS, seed 000, 4.2.2, figure 4.1).

One file each; `choice.py` lists them. A transformation names its candidates in a `View`, says by
how much each would change the summed loss, and which nodes have to change their publisher, in
order: a `Rehang` each, and the next one only when the one before stands.
"""
