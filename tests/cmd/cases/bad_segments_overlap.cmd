fuseplan translate --segments 2-6,6-7
