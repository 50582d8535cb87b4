fuseplan translate -- -5
