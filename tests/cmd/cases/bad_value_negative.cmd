fuseplan translate -1
