"""What docs/network-protocols.md shows works."""

import re
from pathlib import Path

import msgspec

from thalweg.runtime.trust import Role, Users

PAGE = (Path(__file__).parents[3] / "docs" / "network-protocols.md").read_text()


def _block(language):
    [found] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.S | re.M)
    return found


def test_the_page_s_certificates_are_made(tmp_path):
    page = {}
    exec(compile(_block("python"), "docs/network-protocols.md", "exec"), page)
    page["certify"](tmp_path)
    assert (tmp_path / "paris.crt").exists()


def test_the_page_s_users_can_be_read():
    users = msgspec.json.decode(_block("json").replace("…", "0" * 64), type=Users)
    assert users.user("anna").role is Role.SUBMIT
    for role in Role:
        assert f"| `{role.value}` |" in PAGE
