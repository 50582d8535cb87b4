fuseplan --help serch
