fuseplan translate --segments ''
