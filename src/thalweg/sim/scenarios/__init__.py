"""Named scenarios, one file each: a protocol, the faults that it promises to stand, its promise."""
