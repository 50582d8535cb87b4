fuseplan translate ''
