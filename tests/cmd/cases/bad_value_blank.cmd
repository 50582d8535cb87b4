fuseplan translate ' 5'
