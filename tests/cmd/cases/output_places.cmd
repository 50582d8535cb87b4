# A symbolic link is followed to a file that exists.
ln -s m.npy link; touch m.npy; fuseplan mask causal -s 4 --npy link >text; echo $?; ls; ls -l link | grep -o 'link -> m.npy'
# A FIFO stays one.
mkfifo p; timeout 60 cat p >got & fuseplan mask causal -s 4 --npy p >text; echo $?; wait; cmp got m.npy; [ -p p ]; echo $?
# The file has standard output for itself.
fuseplan mask causal -s 4 --npy - 2>said | cmp - m.npy; echo $?; cmp said text; echo $?
fuseplan mask causal -s 4 --npy /dev/stdout 2>said >got; echo $?; cmp got m.npy; cmp said text; echo $?
fuseplan mask causal -s 4 --npy - --svg - | cmp - /dev/null; echo $?
# Nothing is left where the file becomes too large.
rm -f got said p link; mkdir full; cd full
(ulimit -f 1; fuseplan mask causal -s 64 --npy m.npy); echo $?; ls
cd ..; fuseplan mask causal -s 4 --npy full; echo $?
# Whoever made a link to what does not exist would choose where a file lies.
mkdir links; cd links; ln -s nowhere link
fuseplan mask causal -s 4 --npy link; echo $?
fuseplan generate 32768 -b 1 -s 4 --target cpu -o link; echo $?
fuseplan train --data x --name x --db d.db --events link; echo $?
known_db k.db; fuseplan db merge k.db --db link; echo $?; fuseplan db export --db k.db -o link; echo $?
ls
