"""Operator by operator across a wide area: SAND (Ahmad and Çetintemel, VLDB 2004), section 3.

A query is a tree of operators between sources, which stand at hosts, and a proxy. `tree` has the
model, `trees_of` and `deploying` tie it to Problem and Deployment. `edge`, `edge_plus` and
`in_network` place one operator over the configurations of its inputs, so that a protocol can call
them with what messages carry; `placing` does it for whole trees. `optimal` is the yardstick.
"""
