fuseplan translate 5 --quiet=1
