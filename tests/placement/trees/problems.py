"""Small networks and what is wanted in them, drawn from a seed."""

import numpy as np

from thalweg.placement.trees.model import Nodes, one_object, one_tree, tree_each


def drawn_nodes(count, seed, load=1.0):
    """Points in a plane, 20 ms apart on average, so that the triangle inequality holds."""
    rng = np.random.default_rng([seed, 1])
    points = rng.random((count, 2))
    delay = np.linalg.norm(points[:, None] - points[None], axis=2) * 0.038
    filter_s = rng.uniform(0.001, 0.001 + 0.008 * load, count)
    send_s = rng.uniform(0.000125, 0.000125 + 0.00175 * load, count)
    filter_s[0], send_s[0] = 0.001, 0.000125
    return Nodes(delay, filter_s, send_s)


def nested(count, seed, highest=1.5):
    return [one_object(np.random.default_rng([seed, 2]).uniform(0.5, highest, count))]


def interests(count, objects, seed, classes=4):
    """Sets of classes, and tables of union rates as rows with labels make them."""
    rng = np.random.default_rng([seed, 3])
    own = np.where(
        rng.random((count, objects)) < 0.6, 1 << rng.integers(0, classes, (count, objects)), 0
    )
    own[0] = 0
    sets = np.arange(1 << classes)
    table = np.zeros((objects, 1 << classes))
    for x in range(objects):
        labels = rng.integers(1, 1 << classes, 40)
        table[x] = [(labels & s != 0).sum() / 100 for s in sets]
    return own, table


def together(count, objects, seed):
    return one_tree(*interests(count, objects, seed))


def apart(count, objects, seed):
    return tree_each(*interests(count, objects, seed))


CARGOS = {
    "one object": lambda count, seed: nested(count, seed),
    "one tree for many": lambda count, seed: together(count, 5, seed),
    "a tree each": lambda count, seed: apart(count, 5, seed),
}
