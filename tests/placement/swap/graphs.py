"""Annotated join graphs: the source's, and drawn ones."""

from hypothesis import strategies as st

from thalweg.placement.swap.join_graph import AnnotatedJoinGraph, Edge, join_graph


def annotated(streams, edges, delegated, processed, partitioned_by=()):
    """Streams by their names, edges as pairs of names, sites as words."""
    index = {name: i for i, name in enumerate(streams)}
    pairs = [Edge(index[a], 0, index[b], 0) for a, b in edges]
    graph = join_graph(streams, pairs)
    sites = [tuple(processed[edges[pairs.index(e)]].split()) for e in graph.edges]
    homes = tuple(tuple(delegated[s].split()) for s in streams)
    return AnnotatedJoinGraph(graph, homes, tuple(sites), partitioned_by)


RUNNING = annotated(  # 5.1.2
    "RST",
    [("R", "S"), ("S", "T")],
    {"R": "1", "S": "2", "T": "3"},
    {("R", "S"): "1", ("S", "T"): "3"},
)

# Figure 5.4(b) as far as the text tells it; R5 and R6 follow from "Site 5 to Site 2 first and then
# to Site 6" with no edge between 5 and 2.
FIGURE_5_4 = annotated(
    ("R1", "R2", "R3", "R4", "R5", "R6"),
    [("R1", "R2"), ("R2", "R4"), ("R1", "R3"), ("R4", "R5"), ("R5", "R6")],
    {"R1": "1", "R2": "2", "R3": "1", "R4": "4", "R5": "5", "R6": "6"},
    {
        ("R1", "R2"): "2",
        ("R2", "R4"): "2",
        ("R1", "R3"): "1",
        ("R4", "R5"): "5",
        ("R5", "R6"): "6",
    },
)

FIGURE_5_3 = annotated(  # R in two parts, divided by the join's value
    "RST",
    [("R", "S"), ("S", "T")],
    {"R": "1' 1''", "S": "2", "T": "3"},
    {("R", "S"): "1' 1''", ("S", "T"): "3"},
    (0, None, None),
)


@st.composite
def annotated_graphs(draw, most_streams=6, most_sites=6, parallel=True):
    """Trees or graphs with cycles; streams and edges at any sites, some at two in parallel."""
    count = draw(st.integers(2, most_streams))
    columns = st.integers(0, 1)
    edges = [
        Edge(draw(st.integers(0, i - 1)), draw(columns), i, draw(columns)) for i in range(1, count)
    ]
    more = draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=2)
    )
    edges += [Edge(a, draw(columns), b, draw(columns)) for a, b in more if a != b]
    graph = join_graph([f"R{i}" for i in range(count)], draw(st.permutations(edges)))
    names = [f"{i}" for i in range(1, draw(st.integers(1, most_sites)) + 1)]
    site = st.sampled_from(names).map(lambda s: (s,))
    delegated = [draw(site) for _ in graph.streams]
    processed = [draw(site) for _ in graph.edges]
    partitioned_by = [None] * count
    if parallel and draw(st.booleans()):
        stream = draw(st.integers(0, count - 1))
        delegated[stream] = ("p", "q")
        at = draw(st.sampled_from([i for i, e in enumerate(graph.edges) if stream in e.streams]))
        if draw(st.booleans()):
            processed[at] = ("p", "q")
        if draw(st.booleans()):
            partitioned_by[stream] = graph.edges[at].column(stream)
    return AnnotatedJoinGraph(graph, tuple(delegated), tuple(processed), tuple(partitioned_by))
