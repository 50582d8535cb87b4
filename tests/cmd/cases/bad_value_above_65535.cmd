fuseplan translate 65536
