fuseplan translate 01
