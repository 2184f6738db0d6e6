"""What the page on placement shows can be run."""

from __future__ import annotations

import re
from pathlib import Path

from thalweg.placement.strategies import STRATEGIES
from thalweg.placement.verify import Rule

PAGE = (Path(__file__).parents[3] / "docs" / "placement.md").read_text()


def test_the_example_is_planned_as_shown() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.S)
    names: dict[str, object] = {"text": text}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(code, names)  # the page's own assertion is the test
    assert names["outcome"].deployment.admitted == 1  # type: ignore[attr-defined]


def test_every_strategy_and_rule_is_on_the_page() -> None:
    for strategy in STRATEGIES:
        assert f"| `{strategy.name}` |" in PAGE
    for rule in set(Rule) - {Rule.REFERENCE, Rule.SELF_SEND, Rule.SHARE}:
        assert re.search(rf"^\|[^|]*\b{rule}\b", PAGE, re.M), rule
