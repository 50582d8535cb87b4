fuseplan translate --segments 6-2
