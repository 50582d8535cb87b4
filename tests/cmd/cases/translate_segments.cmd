fuseplan translate --segments 2-6,8-9 --handwritten && fuseplan translate --segments 0-14 && fuseplan translate --segments 3
