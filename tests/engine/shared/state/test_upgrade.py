import sqlite3
from pathlib import Path

import pytest

from thalweg.engine.shared.state.schema import CONTAINED, FORMAT
from thalweg.engine.shared.state.store import Store, StoreError
from thalweg.engine.shared.state.upgrade import MIGRATIONS, format_of, upgrade


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Store(tmp_path / "data").close()
    return tmp_path / "data"


def written_by(folder: Path, number: int) -> None:
    with sqlite3.connect(folder / "book.sqlite") as book:
        book.execute("UPDATE meta SET value = ? WHERE name = 'format'", (str(number),))


def test_a_data_directory_of_this_format_is_left_alone(folder: Path) -> None:
    assert upgrade(folder) is None
    assert [p.name for p in folder.parent.iterdir()] == ["data"]


def test_another_format_is_not_opened_and_nothing_is_written_to_it(folder: Path) -> None:
    written_by(folder, FORMAT + 1)
    with pytest.raises(StoreError, match="thalweg upgrade"):
        Store(folder)
    assert format_of(folder) == FORMAT + 1


@pytest.mark.parametrize("number", CONTAINED)
def test_a_format_that_this_one_contains_is_this_one_once_it_is_open(
    folder: Path, number: int
) -> None:
    """The version that wrote it would pass over what this one adds: it refuses it from now on."""
    written_by(folder, number)
    Store(folder).close()
    assert format_of(folder) == FORMAT


def test_migrations_run_one_after_the_other_and_a_copy_is_kept(folder: Path) -> None:
    written_by(folder, 7)

    def note(text: str):
        return lambda f: (f / "log").open("a").write(text)

    copy = upgrade(folder, to=9, migrations={7: note("7 "), 8: note("8 ")})
    assert (folder / "log").read_text() == "7 8 "
    assert format_of(folder) == 9
    assert copy == folder.with_name("data.format-7")
    assert format_of(copy) == 7
    assert not (copy / "log").exists()


def test_a_migration_that_fails_leaves_what_there_was(folder: Path) -> None:
    written_by(folder, 7)

    def fails(f: Path) -> None:
        (f / "half").write_text("done")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        upgrade(folder, to=8, migrations={7: fails})
    assert format_of(folder) == 7
    assert not (folder / "half").exists()
    assert [p.name for p in folder.parent.iterdir()] == ["data"]


@pytest.mark.parametrize(("number", "why"), [(4, "too old"), (99, "a newer version wrote it")])
def test_what_can_not_be_migrated_is_told_apart(folder: Path, number: int, why: str) -> None:
    written_by(folder, number)
    with pytest.raises(StoreError, match=why):
        upgrade(folder)


def test_every_format_from_the_fifth_on_can_be_migrated() -> None:
    assert sorted(MIGRATIONS) == list(range(5, FORMAT))


def test_what_is_no_data_directory_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a data directory"):
        upgrade(tmp_path)
