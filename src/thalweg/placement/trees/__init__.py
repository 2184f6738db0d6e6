"""Trees that carry streams from their home to all who want them (COSMOS, seed 000, chapter 4).

`model.py` says what there is (nodes, and what each tree carries), `cost.py` what a tree costs,
`ledger.py` the same after one change; `strategies.py` lists those who build trees. `optimum.py` and
`bound.py` are the yardsticks, `explain.py` says why a node hangs where it hangs. `view.py` and
`benefit.py` are what one node knows and can improve: the protocol of `overlay/trees` calls them.
"""
