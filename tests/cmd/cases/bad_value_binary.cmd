fuseplan translate 0b2
