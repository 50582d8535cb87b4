fuseplan --version
