from tests.sharing.test_normal import core

from thalweg.sharing.naming import leaf_names, named_columns


def test_columns_of_one_stream_have_their_own_names() -> None:
    assert [f.name for f in named_columns(core("SELECT k FROM B").streams)] == ["k", "w", "p"]


def test_columns_of_several_streams_say_whose_they_are() -> None:
    streams = core("SELECT a.k FROM A a, B b, A c").streams
    assert leaf_names(streams) == ("A1", "A2", "B")
    assert [f.name for f in named_columns(streams)][::5] == ["A1.k", "A2.k", "B.k"]
