fuseplan completion csh
