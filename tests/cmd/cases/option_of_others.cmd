fuseplan translate 5 -b 1
