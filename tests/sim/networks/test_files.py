import json

import numpy as np
import pytest

from thalweg.sim.networks import files, transit_stub
from thalweg.sim.networks.topology import BadTopology


def test_what_is_saved_is_loaded(tmp_path):
    t = transit_stub.generate(transit_stub.small(60), seed=4)
    file = tmp_path / "t.json"
    files.save(t, file)
    back = files.load(file)
    assert back.name == t.name
    for field in ("is_transit", "domain", "position", "ends", "latency_us", "bandwidth_bps"):
        ours, theirs = getattr(t, field), getattr(back, field)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


GOOD = {
    "format": "thalweg-topology",
    "version": 1,
    "nodes": [["transit", 0, 0, 0], ["stub", 1, 1.5, 0]],
    "links": [[0, 1, 250, 1000]],
}


def test_a_file_made_by_hand_is_read(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(GOOD))
    assert files.load(file).latency_us.tolist() == [250]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, 'not a topology; it needs "format": "thalweg-topology"'),
        ({"version": 2}, "version 2 can't be read"),
        ({"nodes": 5}, "nodes must be a list"),
        ({"nodes": [["hub", 0, 0, 0], ["stub", 1, 1, 0]]}, "node 0 is a 'hub'"),
        ({"links": [[0, 1, 250]]}, r"links\[0\] is \[0, 1, 250\]; it must be \[int, int, int, int"),
        ({"links": [[0, 1, 2.5, 1000]]}, r"links\[0\] is"),
        ({"links": [[0, 1, -250, 1000]]}, "delay of -250 µs"),
        ({"links": [[0, 1, 1 << 40, 1000]]}, "too large"),
        ({"links": []}, "not connected"),
    ],
)
def test_a_bad_file_says_what_is_wrong(tmp_path, changes, message):
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(GOOD | changes))
    with pytest.raises(BadTopology, match=message):
        files.load(file)


def test_a_file_that_is_no_json_is_refused(tmp_path):
    file = tmp_path / "bad.json"
    file.write_text("{")
    with pytest.raises(BadTopology, match="not JSON"):
        files.load(file)
