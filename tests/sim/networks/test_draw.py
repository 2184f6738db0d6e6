import pytest

from thalweg.sim.networks import draw, transit_stub


def test_pictures_by_their_ending_the_same_each_time(tmp_path):
    t = transit_stub.generate(transit_stub.small(60), seed=4)
    marked = {"proxy": [20], "sources": [30, 31]}
    for name in ("a.svg", "b.svg", "c.png"):
        draw.save_picture(t, tmp_path / name, marked)
    text = (tmp_path / "a.svg").read_text()
    assert "<svg" in text
    assert "LineCollection" in text
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_another_ending_is_refused(tmp_path):
    t = transit_stub.generate(transit_stub.small(60), seed=4)
    with pytest.raises(ValueError, match=r"a picture ends in \.svg or \.png"):
        draw.save_picture(t, tmp_path / "a.gif")
