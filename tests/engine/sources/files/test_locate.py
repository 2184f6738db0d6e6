from pathlib import Path

import pytest

from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.files.locate import File, format_of, locate, natural_key


def names(uri: str, folder: Path) -> list[str]:
    return [Path(f.path).name for f in locate(uri, folder).files()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("part-10.csv", "part-2.csv", "part-1.csv", ".hidden.csv", "_SUCCESS", "x [1].csv"):
        (tmp_path / name).write_text(name)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "part-3.csv").write_text("")
    return tmp_path


def test_numbers_in_names_count_as_numbers(folder: Path):
    assert names("part-*.csv", folder) == ["part-1.csv", "part-2.csv", "part-10.csv"]


def test_a_folder_means_its_files_but_not_hidden_ones_nor_those_below(folder: Path):
    assert names(".", folder) == ["part-1.csv", "part-2.csv", "part-10.csv", "x [1].csv"]


def test_a_file_may_be_named_like_a_pattern(folder: Path):
    assert names("x [1].csv", folder) == ["x [1].csv"]
    assert names("part-[12].csv", folder) == ["part-1.csv", "part-2.csv"]


def test_patterns_may_reach_into_folders(folder: Path):
    assert names("**/part-3.csv", folder) == ["part-3.csv"]


def test_files_may_be_given_by_uri_or_absolute_path(folder: Path):
    path = folder / "x [1].csv"
    assert names(path.as_uri(), Path("/")) == ["x [1].csv"]
    assert names(str(folder / "part-1*.csv"), Path("/")) == ["part-1.csv", "part-10.csv"]


def test_what_does_not_exist_is_an_error_with_the_nearest_name(folder: Path):
    with pytest.raises(
        SourceError, match=r"there is no file .*/part_1.csv; did you mean part-1.csv\?"
    ):
        locate("part_1.csv", folder)
    with pytest.raises(SourceError, match="there is no folder"):
        locate("nowhere/x.csv", folder)


def test_the_form_is_what_all_endings_agree_on():
    def form(*paths: str) -> str | None:
        return format_of(File(p, 0) for p in paths)

    assert form("a.csv", "b.CSV.gz") == "csv"
    assert form("a.jsonl", "a.txt") == "json"
    assert form("a.csv", "a.json") is None
    assert form("a.txt") is None


def test_the_natural_order_is_total():
    assert natural_key("a01") != natural_key("a1")
    assert sorted(["b", "a1b", "a", "1", "a10", "a2"], key=natural_key) == [
        "1",
        "a",
        "a1b",
        "a2",
        "a10",
        "b",
    ]
