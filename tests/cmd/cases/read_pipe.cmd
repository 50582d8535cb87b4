# Files that are no files: each command would wait for somebody who writes, or read for ever.
mkfifo pipe
for command in 'mask file:pipe -s 8' 'train --data pipe --name x' \
  'db import /dev/zero' 'train --data /dev/zero --name x' 'mask file:/dev/zero -s 8'; do
  timeout 60 fuseplan $command
  echo "exit $?"
done
