"""Builds an S3 server for the tests, by the name of its Go module, into the environment's folder.

Ends with 0 where it is there, or where it can't be had (no Go, no network): the tests that need it
are skipped then, and say so.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
TARGET = Path(sys.executable).parent / "versitygw"
TIMEOUT_S = 900


def main() -> None:
    if TARGET.exists():
        return
    go = shutil.which("go")
    if go is None:
        sys.stderr.write("no Go here: tests of the object store run without an S3 server\n")
        return
    sys.stderr.write("Building an S3 server for the tests (a few minutes the first time) ...\n")
    environment = {**os.environ, "GOBIN": str(TARGET.parent.resolve())}
    try:
        subprocess.run(
            [go, "install", MODULE], env=environment, timeout=TIMEOUT_S, check=True, stdout=2
        )
    except (subprocess.SubprocessError, OSError) as error:
        sys.stderr.write(f"the S3 server can't be built, its tests are skipped: {error}\n")


if __name__ == "__main__":
    main()
