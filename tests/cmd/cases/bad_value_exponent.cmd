fuseplan translate 1e3
