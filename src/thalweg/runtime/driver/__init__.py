"""The live driver of protocol stacks, the twin of the simulator's (`sim/world.py`)."""

from thalweg.runtime.driver.driver import Driver, Health
from thalweg.runtime.driver.errors import DriverClosed, DriverError
from thalweg.runtime.driver.post import Post
from thalweg.runtime.driver.store import Store, StoreError

__all__ = ["Driver", "DriverClosed", "DriverError", "Health", "Post", "Store", "StoreError"]
