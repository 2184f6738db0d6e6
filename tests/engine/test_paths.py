import os
from pathlib import Path

import pytest

from thalweg.engine.paths import ANYWHERE, AllowedFolders, PathRefused
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.registry import open_sink
from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.files.locate import locate


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An allowed folder, beside one that is not."""
    for folder in ("home", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "in.csv").write_text("ts,a\n")
    (tmp_path / "home" / "link").symlink_to(tmp_path / "other")
    (tmp_path / "home" / "linked.csv").symlink_to(tmp_path / "other" / "in.csv")
    (tmp_path / "home" / "self").symlink_to(tmp_path / "home" / "self")
    os.mkfifo(tmp_path / "home" / "pipe")
    return tmp_path / "home"


ESCAPES = [
    "/etc/passwd",
    "../other/in.csv",
    "a/../../other/in.csv",
    "link/in.csv",
    "linked.csv",
    "link/new/folder",
    "self",
    "pipe",
    "/dev/full",
    "/dev/stdout",
    "/proc/self/mem",
    "a\0b",
    "x" * 5_000,
    "/".join(["y" * 200] * 40),
]


@pytest.mark.parametrize("name", ESCAPES)
def test_no_path_leads_out_of_the_folders_that_are_allowed(home: Path, name: str) -> None:
    allowed = AllowedFolders((home,))
    with pytest.raises(PathRefused) as refused:
        allowed.checked(home / name)
    assert len(str(refused.value)) < 1_500
    for form in ("jsonl", "csv", "parquet"):
        with pytest.raises(SinkError):
            open_sink(f"{form}:{name}", home, allowed=allowed)
    for source in (name, f"file:{name}"):
        if "\0" not in name:
            with pytest.raises(SourceError):
                locate(source, home, allowed).files()
    with pytest.raises(SourceError):
        locate(name, home, allowed).files()


@pytest.mark.parametrize("pattern", ["../other/*.csv", "link/*.csv", "/etc/*", "*/in.csv", "li*"])
def test_nor_does_a_pattern(home: Path, pattern: str) -> None:
    with pytest.raises(SourceError):
        locate(pattern, home, AllowedFolders((home,))).files()


def test_a_link_in_a_folder_is_not_followed_out_of_it(home: Path) -> None:
    with pytest.raises(SourceError, match="outside of the folders"):
        locate(".", home, AllowedFolders((home,))).only("csv").files()


def test_what_is_inside_may_be_used(home: Path) -> None:
    allowed = AllowedFolders((home,))
    assert [f.path for f in locate("in.csv", home, allowed).files()] == [str(home / "in.csv")]
    assert [f.path for f in locate("in*", home, allowed).files()] == [str(home / "in.csv")]
    open_sink("jsonl:new/out.jsonl", home, allowed=allowed)
    open_sink(f"parquet:{home}/new", Path("/"), allowed=allowed)


def test_several_folders_may_be_allowed_and_all(home: Path) -> None:
    both = AllowedFolders((home, home.parent / "other"))
    assert both.checked(home / "link" / "in.csv") == home.parent / "other" / "in.csv"
    assert ANYWHERE.checked(Path("/etc/passwd"))


def test_a_refusal_says_what_to_do(home: Path) -> None:
    with pytest.raises(SinkError, match=f"start the service with --allow {home.parent}/other$"):
        open_sink("jsonl:../other/x.jsonl", home, allowed=AllowedFolders((home,)))


def test_a_sink_for_files_takes_no_folder_and_the_other_way_round(home: Path) -> None:
    with pytest.raises(SinkError, match="is a folder: name a file in it"):
        open_sink("jsonl:.", home)
    with pytest.raises(SinkError, match="is a file: name a folder"):
        open_sink("parquet:in.csv", home)
