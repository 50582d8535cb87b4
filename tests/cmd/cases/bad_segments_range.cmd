fuseplan translate --segments 2-15
