from tests.placement.trees.problems import drawn_nodes, nested

from thalweg.placement.trees.explain import why
from thalweg.placement.trees.greedy import Greedy


def test_a_node_is_told_its_way_and_what_other_parents_would_cost():
    nodes, cargos = drawn_nodes(16, 1), nested(16, 1)
    forest = Greedy().build(nodes, cargos)
    deep = max(range(1, 16), key=lambda i: forest[0][i])
    lines = why(nodes, cargos, forest, deep)
    assert lines[0] == f"n{deep} hangs under n{forest[0][deep]}"
    assert "on links" in lines[1]
    assert lines[2].strip().startswith("n0 → ")
    assert sum("all would lose" in line for line in lines) == 3
    assert "busy" in lines[-1]


def test_alternatives_come_best_first_and_names_can_be_given():
    nodes, cargos = drawn_nodes(8, 2), nested(8, 2)
    forest = Greedy().build(nodes, cargos)
    lines = why(nodes, cargos, forest, 3, names=list("abcdefgh"), alternatives=5)
    told = [line for line in lines if "all would lose" in line]
    shares = [float(line.split("lose ")[1].split("%")[0]) for line in told if "more" in line]
    assert shares == sorted(shares)
    assert lines[0].startswith("d hangs under ")


def test_the_home_and_strangers_have_short_answers():
    nodes, cargos = drawn_nodes(4, 3), nested(4, 3)
    forest = Greedy().build(nodes, cargos)
    assert why(nodes, cargos, forest, 0) == ["n0 is the home: every way begins there"]
    cargos[0].own[2] = 0
    assert why(nodes, cargos, forest, 2) == ["n2 wants nothing of this tree"]
