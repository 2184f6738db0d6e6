import subprocess
import sys

from bench.measure import CpuWatch, family_bytes

BURN = "import time\nwhile time.process_time() < 0.5: pass"


def test_processor_seconds_count_children_that_have_ended():
    watch = CpuWatch()
    subprocess.run([sys.executable, "-c", BURN], check=True, timeout=300)
    assert 0.4 < watch.seconds < 30


def test_processor_seconds_count_children_that_run():
    watch = CpuWatch()
    burning = f"{BURN}\nprint('done', flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", burning], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert watch.seconds > 0.4
        child.communicate(b"\n", timeout=300)


def test_memory_is_that_of_this_process_at_least():
    assert family_bytes() > 10_000_000
