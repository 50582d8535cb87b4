# Options in the place of a command.
fuseplan -q search -b 1; echo $?
fuseplan --db x.db query; echo $?
fuseplan -v; echo $?
fuseplan --verison; echo $?
fuseplan --hepl search; echo $?
fuseplan --nothing; echo $?
fuseplan -x; echo $?
