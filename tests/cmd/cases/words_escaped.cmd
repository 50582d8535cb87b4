# Control characters and bytes that are no UTF-8 do not reach the terminal.
fuseplan "$(printf 'bad\ncommand\033[31m')"; echo $?
fuseplan query -b 1 -s 4 -m "$(printf 'mask\377\302\233\t')"; echo $?
fuseplan translate "$(printf '1\0072')"; echo $?
fuseplan mask full -s 4 "$(printf -- '-\377')"; echo $?
fuseplan query -b 1 -s 4 --db "$(printf 'caf\303\251\r.db')"; echo $?
