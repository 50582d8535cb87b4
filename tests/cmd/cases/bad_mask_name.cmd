fuseplan mask stridd -s 4
