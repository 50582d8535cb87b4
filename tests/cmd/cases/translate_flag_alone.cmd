fuseplan translate 5 --handwritten
