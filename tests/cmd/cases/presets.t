=== generate presets
## A GPU runs every preset, whatever the size of its heads.
$ presets=$(fuseplan query -b 1 -s 4 --preset none 2>&1 | sed 's/.*expected //; s/,//g; s/ or / /')
$ for preset in $presets; do
>   fuseplan generate 32768 -b 1 -s 64 --preset $preset --target cuda --arch sm_90a -q -o g --force || echo $preset
> done
