fuseplan serch
