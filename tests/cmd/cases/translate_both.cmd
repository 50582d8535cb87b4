fuseplan translate 5 --segments 2-6
