"""Masters that Thalweg runs on, beside `local`, which all other tests use."""

import subprocess
import sys

import pytest

from thalweg.engine.session import SessionError, spark_session

pytestmark = pytest.mark.heavy


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_standalone_cluster_of_two_machines(tmp_path):
    run = [sys.executable, "-m", "tests.engine.standalone_days", str(tmp_path / "days")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=590, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_spark_connect_is_refused_with_the_reason():
    with pytest.raises(SessionError, match=r"Spark Connect, whose clients have no RDDs"):
        spark_session("sc://127.0.0.1:15002")


def test_an_unknown_master_is_refused():
    with pytest.raises(SessionError, match="there is no Spark master 'mesos://x'"):
        spark_session("mesos://x")
