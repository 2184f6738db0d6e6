import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "ensure_java.py"


@pytest.fixture
def ensure_java():
    """The script as a module: it is not part of the package."""
    spec = importlib.util.spec_from_file_location("ensure_java", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def java_that_says(tmp_path, monkeypatch):
    """Puts a `java` that prints the given banner under JAVA_HOME."""

    def make(banner: str) -> Path:
        java = tmp_path / "bin" / "java"
        java.parent.mkdir(exist_ok=True)
        java.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        return java

    return make


@pytest.fixture
def no_java(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.parametrize(
    ("banner", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("The operation couldn’t be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_major_version_is_read_from_old_and_new_banners(ensure_java, banner, major):
    assert ensure_java.parse_major(banner) == major


def test_new_enough_java_is_taken_without_a_word(ensure_java, java_that_says, capsys):
    java_that_says('openjdk version "17.0.1" 2021-10-19')
    assert ensure_java.main() == 0
    assert capsys.readouterr().err == ""


def test_old_java_is_refused_by_name(ensure_java, java_that_says, capsys):
    java = java_that_says('openjdk version "11.0.2" 2019-01-15')
    assert ensure_java.main() == 1
    message = capsys.readouterr().err
    assert message.startswith(f"{java} is Java 11")
    assert message.count("\n") == 1


def test_java_home_without_java_is_refused(ensure_java, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert ensure_java.main() == 1
    assert "does not run" in capsys.readouterr().err


@pytest.mark.usefixtures("no_java")
def test_without_java_and_apt_get_one_line_says_what_to_do(ensure_java, capsys):
    assert ensure_java.main() == 1
    message = capsys.readouterr().err
    assert "install Java 17" in message
    assert message.count("\n") == 1


@pytest.mark.usefixtures("no_java")
def test_without_java_apt_get_installs_one(ensure_java, tmp_path, monkeypatch):
    """A fake apt-get that knows no Java 17 package, as on Debian 13, but the default one."""
    (tmp_path / "env").symlink_to("/usr/bin/env")
    packaged = tmp_path / "packaged-java"
    packaged.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    packaged.chmod(0o755)
    apt_get = tmp_path / "apt-get"
    apt_get.write_text(
        "#!/bin/sh\n"
        f'echo "$*" >> "{tmp_path}/calls"\n'
        'case "$*" in\n'
        "*openjdk-17*) exit 100 ;;\n"
        f'*default-jre-headless*) /bin/mv "{packaged}" "{tmp_path}/java" ;;\n'
        "esac\n"
    )
    apt_get.chmod(0o755)
    monkeypatch.setattr(ensure_java.os, "geteuid", lambda: 0)
    assert ensure_java.main() == 0
    assert [call.split()[1] for call in (tmp_path / "calls").read_text().splitlines()] == [
        "update",
        "install",
        "install",
    ]
