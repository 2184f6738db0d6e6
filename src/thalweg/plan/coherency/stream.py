"""The classes of a whole stream: each key has its own held values (`TOLERANCE … PER symbol`).

A class starts for all keys at once, with the newest row of each; a key that comes later begins with
its first row. A stream without a key has one, `None`.
"""

from __future__ import annotations

from collections.abc import Hashable

from thalweg.plan.coherency.classes import Class, Due, KeyClasses, Start
from thalweg.plan.coherency.tolerance import Tolerance, Update


class StreamClasses:
    def __init__(self) -> None:
        self.keys: dict[Hashable, KeyClasses] = {}
        self._started: dict[Class, Tolerance] = {}

    def start(self, name: Class, tolerance: Tolerance) -> dict[Hashable, Start]:
        """The decisions to be written down: what each key holds for the new class."""
        if name in self._started:
            raise ValueError(f"class {name} has started already")
        self._started[name] = tolerance
        found = {k: Start(name, tolerance, c.newest) for k, c in self.keys.items()}
        for key, decision in found.items():
            self.keys[key].start(decision)
        return found

    def end(self, name: Class) -> None:
        self._started.pop(name, None)
        for classes in self.keys.values():
            classes.end(name)

    def arrive(self, key: Hashable, row: Update) -> list[Due]:
        if key not in self.keys:
            classes = self.keys[key] = KeyClasses()
            for name, tolerance in self._started.items():
                classes.start(Start(name, tolerance, None))
        return self.keys[key].arrive(row)

    def advance(self, instant: int) -> list[tuple[Hashable, Due]]:
        """What passes by age, in order of instants; of one instant, the keys that came first."""
        found = [(k, due) for k, c in self.keys.items() for due in c.advance(instant)]
        return sorted(found, key=lambda pair: pair[1].instant)
