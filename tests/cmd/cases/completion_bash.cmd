# What bash offers; it splits words at '=' and ':'.
cat >try.sh <<'END'
eval "$(fuseplan completion bash)"
offer() { COMP_LINE=$1 COMP_POINT=${#1}; COMPREPLY=(); _fuseplan; echo "${COMPREPLY[@]}"; }
offer 'fuseplan tr'
offer 'fuseplan mask --s'
offer 'fuseplan search --mask str'
offer 'fuseplan search -m sl'
offer 'fuseplan query --format '
offer 'fuseplan search --budget '
offer 'fuseplan help se'
offer 'fuseplan generate 41115 -o tr'
offer 'fuseplan search --format=j'
offer 'fuseplan search -m strided:'
offer 'fuseplan search -m file:tr'
offer 'fuseplan search --mask=file:tr'
END
bash try.sh
