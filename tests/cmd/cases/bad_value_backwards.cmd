fuseplan translate 3..1
