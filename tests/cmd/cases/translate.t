=== forms
$ fuseplan translate 6826 0x1aaa 0b1101010101010 41115 65535 0
6826 0 2 1 2 3 4
6826 0 2 1 2 3 4
6826 0 2 1 2 3 4
41115 1 4 3 7 9 10 11 12 14 15
65535 1 1 1 15
0 0 1 1 15
$ fuseplan translate 43688..43691 all | head -n 6
43688 1 1 13 15
43689 1 1 13 14
43690 1 0
43691 1 1 14 15
0 0 1 1 15
1 0 1 1 14
$ fuseplan translate 41115 21845 --format csv
value,bits,canonical,pos0,handwritten,fused
41115,1010000010011011,41115,1,true,2-6 8-9 10-11 13-14
21845,0101010101010101,43690,0,false,
$ fuseplan translate 41115 21845 --format json
[
 {"value": 41115, "bits": "1010000010011011", "canonical": 41115, "pos0": 1, "handwritten": true, "fused": "2-6 8-9 10-11 13-14", "segments": [[0, 0], [1, 1], [2, 6], [7, 7], [8, 9], [10, 11], [12, 12], [13, 14]]},
 {"value": 21845, "bits": "0101010101010101", "canonical": 43690, "pos0": 0, "handwritten": false, "fused": "", "segments": [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 6], [7, 7], [8, 8], [9, 9], [10, 10], [11, 11], [12, 12], [13, 13], [14, 14]]}
]
$ fuseplan translate 41115 21845 --format ndjson
{"value":41115,"bits":"1010000010011011","canonical":41115,"pos0":1,"handwritten":true,"fused":"2-6 8-9 10-11 13-14","segments":[[0,0],[1,1],[2,6],[7,7],[8,9],[10,11],[12,12],[13,14]]}
{"value":21845,"bits":"0101010101010101","canonical":43690,"pos0":0,"handwritten":false,"fused":"","segments":[[0,0],[1,1],[2,2],[3,3],[4,4],[5,5],[6,6],[7,7],[8,8],[9,9],[10,10],[11,11],[12,12],[13,13],[14,14]]}
=== segments
$ fuseplan translate --segments 2-6,8-9 --handwritten && fuseplan translate --segments 0-14 && fuseplan translate --segments 3
41109 1 2 3 7 9 10
32768 1 1 1 15
43690 1 0
2$ fuseplan translate --segments 2-7 --handwritten
! fuseplan translate: the hand-written operator serves ops 2-6 as one segment only; name segment 2-6 or leave the flag out
2$ fuseplan translate 5 --segments 2-6
! fuseplan translate: --segments and the value '5' are given at once; give one of them
2$ fuseplan translate 5 --handwritten
! fuseplan translate: --handwritten without --segments; a value's first binary digit says whether attention is hand-written
=== values
2$ fuseplan translate
! fuseplan translate: no value; give one from 0 to 65535, 16 binary digits, a range lo..hi or --segments
