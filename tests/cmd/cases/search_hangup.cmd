# A terminal that closes sends SIGHUP: the search ends as after Ctrl-C.  nohup(1) has it ignored.
cat >compiler <<'END'
#!/bin/sh
kill -HUP "$(sed 's/.*) . \([0-9]*\).*/\1/' /proc/$PPID/stat)" # the keeper's parent
[ -e ignored ] && { echo 'made up: no compiler' >&2; exit 1; }
exec sleep 60
END
chmod +x compiler
fuseplan search -b 1 -s 8 --target cpu --compiler ./compiler -q
echo $?
touch ignored
(trap '' HUP; fuseplan search -b 1 -s 8 --target cpu --compiler ./compiler -q)
