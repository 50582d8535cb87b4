# The chain as boxes; a neighbour's time is compared with the plan's where both were measured alike.
known_db k.db
export FUSEPLAN_DB=k.db
fuseplan explain 41115 --target cpu -b 1 -s 128 -m causal
fuseplan explain best --target cpu -b 1 -s 128 -m causal --format csv
fuseplan explain 0xa09a --target cpu -b 1 -s 128 -m causal | grep '^time\|compared\|41115'
