fuseplan translate 0x
