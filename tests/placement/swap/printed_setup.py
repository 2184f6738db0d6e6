"""Algorithms 5.2 and 5.3 of COSMOS as printed, with Observation 5.1 kept throughout."""


def set_up_as_printed(djg):
    """Links by (source, target), each with the parent whose bit its mask demands."""
    count, below, above = len(djg.nodes), djg.children, djg.ancestors
    outputs = [{} for _ in range(count)]
    pre = [None] * count
    ancestors = [set() for _ in range(count)]

    def create_output_module(u, v):
        if u == v or v in outputs[u] or v in above[u] or (u in above[v] and v not in below[u]):
            return
        others = list(outputs[u])
        outputs[u][v] = pre[v]
        for other in others:
            create_output_module(v, other)
            create_output_module(other, v)

    for start in range(count):
        if not djg.nodes[start].is_self_contained:
            continue
        visited, queue = [start], [start]
        while queue:
            u = queue.pop(0)
            for v in below[u]:
                pre[v] = u
                ancestors[v] |= ancestors[u] | {u}
                for t in visited:
                    if t not in ancestors[v] or t == u:
                        create_output_module(t, v)
                    if t not in ancestors[v]:
                        create_output_module(v, t)
                visited.append(v)
                queue.append(v)
    return {(u, v): parent for u in range(count) for v, parent in outputs[u].items()}
