fuseplan db
