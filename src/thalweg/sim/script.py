"""Scenarios as stories: commands, and beneath them what they print. See docs/simulation.md.

A block is lines of commands, `----`, and the output that they gave when the file was last made;
blank lines part blocks, `#` begins a comment. `perform` runs a script and gives it back with the
output of today: equal to the file, or something changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.sim.stage import BadCommand, Stage

MARK = "----"


class ScriptError(ValueError):
    """Where in which script, and what is wrong."""


@dataclass(frozen=True, slots=True)
class Block:
    lines: tuple[tuple[int, str], ...]  # commands and comments, each with its line number
    output: tuple[str, ...]


def parse(text: str, name: str = "script") -> list[Block]:
    blocks: list[Block] = []
    lines: list[tuple[int, str]] = []
    output: list[str] | None = None
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.strip() == MARK:
            if output is not None or not lines:
                raise ScriptError(f"{name}:{number}: {MARK} without a command above it")
            output = []
        elif line.strip() == "":
            if lines:
                blocks.append(Block(tuple(lines), tuple(output or ())))
            lines, output = [], None
        elif output is None:
            lines.append((number, line.rstrip()))
        else:
            output.append(line.rstrip())
    return blocks


def perform(text: str, name: str = "script") -> str:
    """The script with its output as it is now."""
    stage = Stage()
    shown = []
    for block in parse(text, name):
        printed: list[str] = []
        for number, line in block.lines:
            if line.lstrip().startswith("#"):
                continue
            try:
                printed += stage.do(line.split())
            except BadCommand as error:
                raise ScriptError(f"{name}:{number}: {error}") from None
        shown.append(_text(block, printed))
    return "\n".join(shown)


def _text(block: Block, printed: list[str]) -> str:
    lines = [line for _, line in block.lines]
    if printed:
        # An empty line would end the output when the file is read again.
        lines += [MARK, *(line.rstrip() or "." for line in printed)]
    return "".join(f"{line}\n" for line in lines)
