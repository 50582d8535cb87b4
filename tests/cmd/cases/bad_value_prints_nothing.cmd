fuseplan translate 5 65536
