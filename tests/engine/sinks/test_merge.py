import io
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from thalweg.engine.sinks.merge import MergedLines


def line(query: str, ts: int, n: int = 0) -> bytes:
    return json.dumps({"query": query, "ts": ts, "n": n}, separators=(",", ":")).encode() + b"\n"


def written(out: io.BytesIO) -> list[tuple[str, int]]:
    entries = [json.loads(x) for x in out.getvalue().splitlines()]
    return [(e["query"], e["ts"]) for e in entries]


def append(path: Path, *lines: bytes) -> None:
    with path.open("ab") as file:
        file.write(b"".join(lines))


def test_lines_below_the_instant_are_written_once_as_files_grow(tmp_path: Path):
    a, b = tmp_path / "a", tmp_path / "b"
    append(a, line("a", 1), line("a", 5))
    append(b, line("b", -3), line("b", 1), line("b", 4))
    out = io.BytesIO()
    merged = MergedLines([("a", a), ("b", b)], out)
    merged.write_below(4)
    assert written(out) == [("b", -3), ("a", 1), ("b", 1)]
    merged.write_below(4)
    append(a, line("a", 5), line("a", 7))
    merged.write_below(6)
    assert written(out)[3:] == [("b", 4), ("a", 5), ("a", 5)]
    merged.write_below(100)
    merged.close()
    assert written(out)[6:] == [("a", 7)]


def test_names_may_need_escapes(tmp_path: Path):
    query = 'ä "quoted",1'
    head = json.dumps({"query": query}, ensure_ascii=False, separators=(",", ":"))
    (tmp_path / "b").write_bytes((head[:-1] + ',"ts":1,"op":"+"}\n').encode())
    append(tmp_path / "a", line("a", 2))
    out = io.BytesIO()
    merged = MergedLines([("a", tmp_path / "a"), (query, tmp_path / "b")], out)
    merged.write_below(9)
    merged.close()
    assert written(out) == [(query, 1), ("a", 2)]


@given(st.lists(st.lists(st.integers(0, 20)), min_size=1, max_size=4), st.lists(st.integers(0, 25)))
def test_the_merge_is_by_instant_then_by_the_files_order(tmp_path_factory, instants, bounds):
    folder = tmp_path_factory.mktemp("merge")
    names = [f"q{i}" for i in range(len(instants))]
    for name, of in zip(names, instants, strict=True):
        append(folder / name, *(line(name, ts, n) for n, ts in enumerate(sorted(of))))
    out = io.BytesIO()
    merged = MergedLines([(n, folder / n) for n in names], out)
    for bound in [*sorted(bounds), 100]:
        merged.write_below(bound)
    merged.close()
    wanted = sorted((ts, name) for name, of in zip(names, instants, strict=True) for ts in of)
    assert written(out) == [(name, ts) for ts, name in wanted]
