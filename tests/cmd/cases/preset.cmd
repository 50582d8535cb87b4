# A preset sets what no option sets, wherever the option stands.
workload() { fuseplan query --target cpu -b 1 -s 4 --db k.db "$@" 2>&1 | grep -o 'h=.* dtype'; }
known_db k.db
workload --preset bert-large
workload --preset bert-large -L 3 --eps 1e-5
workload -H 2 --ffn 8 --preset minilm-l6
fuseplan query -b 1 -s 4 --preset bert-bse; echo $?
