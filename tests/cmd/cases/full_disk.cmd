fuseplan translate 6826 >/dev/full
