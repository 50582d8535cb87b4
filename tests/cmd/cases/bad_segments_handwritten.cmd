fuseplan translate --segments 2-7 --handwritten
