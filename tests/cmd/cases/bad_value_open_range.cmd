fuseplan translate 5..
