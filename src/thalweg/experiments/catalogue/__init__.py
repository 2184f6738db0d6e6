"""The experiments: one module each, `some_name.py` for `thalweg experiment some-name`.

There is no list to edit. A module whose name begins with `_` is shared by its neighbours and is no
experiment itself.
"""
