# What bash offers.
cat >try.sh <<'END'
eval "$(fuseplan completion bash)"
offer() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _fuseplan; echo "${COMPREPLY[@]}"; }
offer fuseplan tr
offer fuseplan mask --s
offer fuseplan search --mask str
offer fuseplan search -m sl
offer fuseplan db ''
offer fuseplan query --format ''
offer fuseplan search --budget ''
offer fuseplan mask sl
offer fuseplan help se
offer fuseplan completion z
offer fuseplan generate 41115 -o tr
END
bash try.sh
