#!/bin/sh
# config.sh FUSEPLAN: settings files are read as git reads them, and only where nobody else can have
# written them.
# shellcheck disable=SC2059 # texts are formats
set -eu
. "$(dirname "$0")/suite.sh"
umask 022
unset FUSEPLAN_CONFIG FUSEPLAN_DB FUSEPLAN_CACHE XDG_CONFIG_HOME

echo "as git reads them"
cat >compare.py <<'END'
import json, os, subprocess, sys
def output(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.decode()
ours = {f"fuseplan.{row['setting']}": row['value'] for row in json.loads(output('fuseplan', 'config', 'list', '--format', 'json'))
        if row['file']}
git = {}
for entry in output('git', 'config', '-f', 'fuseplan.conf', '--list', '-z').split('\0')[:-1]:
    name, equals, value = entry.partition('\n')
    git[name] = os.path.expanduser(value) if equals else 'true'
assert git and ours == git, f'{ours} is not {git}'
END
# same TEXT: of printf
compared=0
same() {
  printf "$1" >fuseplan.conf
  fuseplan config list --format json >list.json 2>said || fail "$1"
  as_schema config list.json
  command -v git >/dev/null || return 0
  python3 compare.py || fail "$1"
  compared=$((compared + 1))
}
same '[fuseplan]\nbatch = 8\n'
same '[FUSEPLAN]\n\tBatch=8,16\r\n\r\n# a\n ; b\n[fuseplan] Seq-Len =  7'
same '\357\273\277[fuseplan]\ngate\nscore-bias = none\nbatch = 1 # 2\n'
same '[fuseplan]\ndb = a  b ; c\ncache = "; d " e\n'
same '[fuseplan]\ndb = "a\\tb\\"\\\\" \\\n  c\\n\ncache = d" "\\\n\n'
same "$(sed -n '/^    \[fuseplan\]/,/^$/s/^    //p' "$(dirname "$0")/../../docs/cli.md")"
[ "$compared" -eq 6 ] || echo "there is no git: not compared"
for text in 'batch = 1' '[fuseplan\n' '[fuseplan]\nbatch : 1' '[fuseplan]\ngate # a' '[fuseplan]\ndb = "a\n' \
  '[fuseplan]\ndb = \\q' '[fuseplan]\n1 = 2'; do
  printf "$text" >fuseplan.conf
  fuseplan config list >out 2>said && fail "read: $text"
  ! command -v git >/dev/null || ! git config -f fuseplan.conf --list 2>>said | grep '^fuseplan' >>out || fail "git reads: $text"
done

echo "whose they are"
printf '[fuseplan]\ndb = mine.db\n' >fuseplan.conf
fuseplan db info >out 2>said && fail "a database: $(cat out)"
grep -q "no database at 'mine.db'" said || fail "the file's database"
unread() { # WHY: each time, since it is no accident
  refused 1 "a settings file is refused; FUSEPLAN_CONFIG=off does without: .*$1" fuseplan query -b 1 -s 8 --target cpu
  FUSEPLAN_CONFIG=off expect 0 fuseplan translate 41115
}
chmod 666 fuseplan.conf
unread "other users may write to 'fuseplan.conf' (mode 666), and could change what it sets; 'chmod go-w'"
chmod 644 fuseplan.conf
if [ "$(id -u)" -eq 0 ]; then
  chown 65533 fuseplan.conf
  unread "'fuseplan.conf' belongs to user without a name (65533), who could change what it sets"
  mv fuseplan.conf theirs
  ln -s theirs fuseplan.conf
  unread "'fuseplan.conf' belongs to user without a name"
  chown 0 theirs
  chown -h 65533 fuseplan.conf
  unread "link 'fuseplan.conf' belongs to user without a name"
  chown -h 0 fuseplan.conf
  fuseplan translate 41115 >out 2>said || fail "a link"
else
  echo "not root: no file is given to another user"
fi
rm -f fuseplan.conf
mkfifo fuseplan.conf
unread "cannot read 'fuseplan.conf': it is a pipe"
