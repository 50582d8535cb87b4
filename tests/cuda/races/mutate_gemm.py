import subprocess,os,sys,shutil,re
cfg={}
for l in open('gemm.txt'):
    n,i,o=l.rstrip('\n').split('|')
    if 'split' not in i: i+=',.split=1'
    if 'cluster=' not in i: i+=',.cluster=1'
    order='rows columns step teams groups depth split cluster norm swap adds keeps rms gate e4m3 out_e4m3 out_both kept'.split()
    d=dict(x[1:].split('=') for x in i.split(','))
    cfg[n]=('{'+', '.join('.%s=%s'%(k,d[k]) for k in order if k in d)+'}',o.split())
H='hopper_gemm.cuh';L='hopper_gemm_load.cuh';C='hopper_gemm_compute.cuh';P='hopper_gemm_pingpong.cuh';O='hopper_gemm_cooperative.cuh';F='hopper_gemm_finish.cuh';S='hopper_gemm_split.cuh';N='hopper_gemm_norm.cuh';W='hopper_gemm_norm_swap.cuh';T='hopper_gemm_store.cuh';X='hopper_gemm_moments.cuh'
M=[
('full: loaders',H,'W::GATHERS ? 33 : 1','W::GATHERS ? 32 : 1','h64x128_in'),
('empty: one block',H,'4 * S::GROUPS * S::CLUSTER','4 * S::GROUPS','x64x96'),
('empty: fewer',H,'4 * S::GROUPS * S::CLUSTER','4 * S::GROUPS * S::CLUSTER - 1','p128x192 c128x192'),
('ready: one storer',H,'W::SCATTERS ? W::STORERS : 1','1','h144x128_swap_out'),
('landed',H,'w.s.landed[i]), 4)','w.s.landed[i]), 3)','p64x64_adds_d2'),
('done',H,'S::SPLIT == 1 ? 4 * S::GROUPS : 1','S::SPLIT == 1 ? 4 * S::GROUPS - 1 : 1','s144x128_adds'),
('turn',H,'w.s.turn[i]), 4)','w.s.turn[i]), 3)','p128x192 p64x64_adds_d2'),
('columns',H,'S::SWAP ? 1 : 32','1','p64x192_adds_mem'),
('taken',H,'w.s.taken[i]), 4)','w.s.taken[i]), 3)','p64x192_adds_clu'),
('handed',H,'w.s.handed), FOUR_WARPS)','w.s.handed), FOUR_WARPS - 32)','p128x192_adds_mem'),
('residual_empty',H,'w.s.residual_empty[i]), 4)','w.s.residual_empty[i]), 3)','p128x192_adds'),
('no cluster wait at start',H,'        cluster_wait();\n    if (group','        ;\n    if (group','x64x96 p64x192_adds_clu'),
('no arrive/wait sync',H,'    __syncthreads();\n','','p128x192'),
('weights: no empty',L,'                mbarrier_wait(address(w.s.empty[at.slot]), at.phase);\n                if (i < count) {','                if (i < count) {','p128x192 h64x128_in'),
('rows: no empty',L,'mbarrier_wait(address(w.s.empty[at.slot]), at.phase ^ 1);',';','p128x192 h64x128_in c128x192_adds'),
('weights: no wait at the end',L,'            for (int i = 0; i < S::STAGES; i++, at.advance())\n                mbarrier_wait(address(w.s.empty[at.slot]), at.phase);','            ;','x64x96'),
('multicast to self',L,'(1 << CLUSTER) - 1','1 << cluster_rank<CLUSTER>()','x64x96'),
('residual bytes',L,'S::PIECE_BYTES);','S::PIECE_BYTES / 2);','c128x192_adds'),
('gathered residual: no arrival',L,'        if constexpr (GATHERS)\n            mbarrier_arrive(full);','','h64x128_in'),
('one step too many at once',L,'min(w.steps(), S::STAGES)','min(w.steps(), S::STAGES + 1)','p128x192'),
('residual_panels: no wait',L,'mbarrier_wait(address(w.s.residual_empty[place]), count / S::PLACES & 1);',';','p128x192_adds'),
('residual_panels: parity',L,'mbarrier_wait(address(w.s.residual_empty[place]), count / S::PLACES & 1);','mbarrier_wait(address(w.s.residual_empty[place]), count / S::PLACES & 1 ^ 1);','p128x192_adds'),
('residual_panels: no dependency',L,'        fetch_map(&w.maps.residual);\n        await_dependencies();','        fetch_map(&w.maps.residual);','p128x192_adds'),
('rows: no dependency',L,'            fetch_map(&w.maps.residual);\n        await_dependencies();','            fetch_map(&w.maps.residual);','p128x192'),
('kept: bytes',L,'if constexpr (S::STAYS)\n            mbarrier_expect(full, S::A_BYTES);','if constexpr (S::STAYS)\n            mbarrier_expect(full, S::A_BYTES / 2);','k128x192'),
('find_rows: no syncwarp 1',L,'        __syncwarp();\n        for (int i = lane; i < BM','        for (int i = lane; i < BM','h64x128_in'),
('find_rows: no syncwarp 2',L,'            w.s.row[i] = static_cast<u32>((row - w.in.x) / VEC<D>);\n        }\n        __syncwarp();','            w.s.row[i] = static_cast<u32>((row - w.in.x) / VEC<D>);\n        }','h64x128_in'),
('give back early',C,'                wgmma_wait<1>();\n                give_back(w, held);','                give_back(w, held);\n wgmma_wait<1>();','p128x192'),
('give back: the last early',C,'        wgmma_wait<0>();\n        give_back(w, held);','        give_back(w, held);\n        wgmma_wait<0>();','p128x192'),
('wait 2 behind',C,'                wgmma_wait<1>();','                wgmma_wait<2>();','p128x192'),
('give back: own block alone',C,'lane < S::CLUSTER','lane < 1','x64x96'),
('kept: no wait for weight',C,'mbarrier_wait(address(w.s.full[S::STAGES + step]), 0);',';','k128x192'),
('no wait for step',C,'            mbarrier_wait(address(w.s.full[S::STAGES + step]), 0);\n        mbarrier_wait(address(w.s.full[at.slot]), at.phase);','            mbarrier_wait(address(w.s.full[S::STAGES + step]), 0);','p128x192 c128x192'),
('gathers: no fence',C,'        if constexpr (W::GATHERS)\n            proxy_fence();','','h64x128_in t64x64_s4_in'),
('residual: no fence',C,'proxy_fence(); /* TMA writes there next */',';','c128x192_adds s144x128_adds'),
('residual: no wait',C,'                mbarrier_wait(address(w.s.full[at.slot]), at.phase);\n                if (S::TEAMS','                if (S::TEAMS','c128x192_adds p64x64_adds_d2'),
('no turn wait',P,'mbarrier_wait(address(w.s.turn[i.team]), parity);',';','p128x192 p64x64_adds'),
('no turn wait between',P,'mbarrier_wait(address(w.s.turn[i.team]), i.team == 0 ? phase ^ 1 : phase);',';','p128x192_adds'),
('no landed wait',P,'mbarrier_wait(address(w.s.landed[other]), parity);',';','p64x64_adds_d2 p64x64_adds p64x192_adds_mem'),
('landed wait late',P,'min(count, STAGES - S::PIECES)','count','p64x64_adds_d2 p64x64_adds p64x192_adds_mem'),
('hand: no meet',P,'        S::meet(team);\n','','p128x192_adds_mem'),
('take: no wait',P,'mbarrier_wait(address(w.s.handed), 0);',';','p128x192_adds_mem'),
('hand: another place',P,'(next.slot + (i < FOURS / 2 ? 0 : 1)) % STAGES','(next.slot + STAGES - 1 - (i < FOURS / 2 ? 0 : 1)) % STAGES','p128x192_adds_mem'),
('addends: no wait',P,'mbarrier_wait(address(w.s.residual_full[place]), number / S::PLACES & 1);',';','p128x192_adds'),
('addends: no fence',P,'                proxy_fence(); /* TMA writes there next */\n','','p128x192_adds'),
('addends: back early',P,'            load_addends(w, x, panel, j, 0);\n','            if (j % EACH == EACH - 1) { proxy_fence(); mbarrier_arrive_warp(address(w.s.residual_empty[place])); }            load_addends(w, x, panel, j, 0);\n if constexpr (0)','p128x192_adds'),
('between: give back early',P,'            add_chunk(w, c, x, j, 1);\n            products::give_back(w, held);','            products::give_back(w, held);\n            add_chunk(w, c, x, j, 1);','p128x192_adds'),
('in turn: always',O,'apart + S::RESIDUAL_STEPS + count > S::STAGES','true','c128x192 c128x192_adds'),
('in turn: first only',O,'second = turns && member == 1','second = false','c128x192'),
('finish: no dependency',F,'await_dependencies(); /* what is stored now may have been read or written before */',';','p128x192 h64x192_out'),
('finish: no ready',F,'mbarrier_wait(ready, S::KEEPS ? 0 : phase);',';','s144x128_adds s96x192pp_adds s144x128_adds_clu'),
('finish: no end',F,'            box_stores_read<0>();',';','p128x192'),
('split: no meet 1',S,'S::meet(0); /* all have read the ring */',';','t64x64_s2'),
('split: no fence',S,'        proxy_fence();\n        S::meet(0);','        S::meet(0);','t64x64_s2'),
('split: no meet 2',S,'        proxy_fence();\n        S::meet(0);','        proxy_fence();','t64x64_s2'),
('split: no wait for begin',S,'        cluster_wait(); /* for all to have begun */',';','t64x64_s2'),
('split: no wait for sums',S,'        mbarrier_wait(address(w.s.done), 0);',';','t64x64_s2'),
('split: no wait at end',S,'        cluster_wait(); /* for all to have what this one sent */',';','t64x64_s2 t64x64_s8_mem_keeps'),
('split: bytes',S,'mbarrier_expect(here, (SPLIT - 1) * OWN_BYTES);','mbarrier_expect(here, (SPLIT - 2) * OWN_BYTES);','t64x64_s2'),
('split: no dependency',S,'        await_dependencies();\n        add_parts','        add_parts','t64x64_s2'),
('norm: no taken',N,'mbarrier_wait(address(w.s.taken[1 - team]), team == 0 ? phase ^ 1 : phase);',';','p64x192_adds_clu p128x192_adds_clu'),
('norm: taken too early',N,'            mbarrier_arrive_warp(address(w.s.taken[team]));\n',';','p64x192_adds_clu'),
('norm: taken before receive',N,'        if constexpr (ORDERED) { /* all at once: the other team waits */','        if constexpr (ORDERED) mbarrier_arrive_warp(address(w.s.taken[team]));        if constexpr (ORDERED) { /* all at once: the other team waits */ if (0) ','p64x192_adds_clu'),
('norm: no full wait',N,'            mbarrier_wait(full, phase);',';','p64x192_adds_clu c128x192_adds_clu'),
('norm: one buffer',N,'NORM == FP_NORM_CLUSTER ? i.nth & 1 : 0, phase = i.nth >> 1 & 1','0, phase = i.nth & 1','c128x192_adds_clu'),
('norm: bytes',N,'mbarrier_expect(full, w.ranks() * BM * static_cast<int>(sizeof(moments)));','mbarrier_expect(full, (w.ranks() - 1) * BM * static_cast<int>(sizeof(moments)));','c128x192_adds_clu'),
('norm: no columns wait',N,'        mbarrier_wait(address(w.s.columns), 0);',';','p64x192_adds_mem'),
('swap: no columns wait',W,'        mbarrier_wait(address(w.s.columns), 0);',';','s144x128_adds_clu'),
('swap: no meet 1',W,'        S::meet(team);\n        write_spreads','        write_spreads','s144x128_adds_clu s144x128_adds_clu_keeps s96x192pp_adds_mem'),
('swap: no meet 2',W,'        write_spreads(w, c, parts + tid / 32 * BM);\n        S::meet(team);','        write_spreads(w, c, parts + tid / 32 * BM);','s144x128_adds_clu'),
('swap: no meet keeps',W,'            S::meet(team);\n            storing::hand_over','            storing::hand_over','s144x128_adds_clu_keeps'),
('swap: no meet 3',W,'        S::meet(team);\n        if constexpr (S::KEEPS)\n            mbarrier_wait(ready, 1);','        if constexpr (S::KEEPS)\n            mbarrier_wait(ready, 1);','s144x128_adds_clu'),
('swap: no ready 1',W,'            mbarrier_wait(ready, 1);',';','s144x128_adds_clu_keeps'),
('swap: no shared wait',W,'            mbarrier_wait(address(w.s.shared[buffer]), phase);',';','s144x128_adds_clu'),
('store: rooms',T,'box_stores_read<ROOMS - 1>();','box_stores_read<ROOMS>();','p128x192'),
('store: no syncwarp 1',T,'            box_stores_read<ROOMS - 1>();\n        __syncwarp();','            box_stores_read<ROOMS - 1>();\n','p128x192'),
('store: no fence',T,'        fill(first_of<PAIRS>(panel));\n        proxy_fence();','        fill(first_of<PAIRS>(panel));\n','p128x192'),
('store: no syncwarp 2',T,'        fill(first_of<PAIRS>(panel));\n        proxy_fence();\n        __syncwarp();','        fill(first_of<PAIRS>(panel));\n        proxy_fence();','p128x192'),
('scatter: no syncwarp 1',T,'        fill(first_of<false>(panel));\n        __syncwarp();','        fill(first_of<false>(panel));\n','h64x192_out'),
('scatter: no syncwarp 2',T,'                             load_chunk((from ^ i * BELOW % 8 * 16) + i * BELOW * LINE));\n        }\n        __syncwarp();','                             load_chunk((from ^ i * BELOW % 8 * 16) + i * BELOW * LINE));\n        }\n','k128x192_heads'),
('hand_in: no fence',T,'        proxy_fence();\n        mbarrier_arrive_warp(done);','        mbarrier_arrive_warp(done);','s144x128_adds'),
('store_tile: no read wait',T,'        box_stores_end();\n        box_stores_read<0>();','        box_stores_end();\n','s144x128_adds s96x192pp_adds'),
('store_tiles: no done',T,'            mbarrier_wait(address(w.s.done[i % S::TEAMS]), S::KEEPS ? 1 : i / S::TEAMS & 1);',';','s144x128_adds'),
('store_tiles: one team',T,'            mbarrier_arrive(address(w.s.ready[i % S::TEAMS]));\n            mbarrier_wait(address(w.s.done[i % S::TEAMS]), S::KEEPS','            mbarrier_arrive(address(w.s.ready[0]));\n            mbarrier_wait(address(w.s.done[i % S::TEAMS]), S::KEEPS','s96x192pp_adds'),
('mail: not emptied',X,'                    store_relaxed(from + i * LANES * BM + r * BELOW, 0);',';','p64x192_adds_mem'),
('mail: waits for one',X,'all &= word[r][i] != 0;','all |= word[r][i] != 0;','p64x192_adds_mem'),
('at once: no end of stores',N,'        if (S::lane() == 0)\n            box_stores_read<0>();\n        __syncwarp();\n#pragma','        __syncwarp();\n#pragma','e64x192_clu_both'),
('both: no syncwarp',N,'            from = at;\n','            from = at + 16;\n','e128x192_mem_both'),
]
pick=sys.argv[1] if len(sys.argv)>1 else '.'
caught=0;total=0
for name,f,a,b,cs in M:
    if not re.search(pick,name): continue
    t=open(f'../../../kernels/cuda/{f}').read(); n=t.count(a)
    if n!=1: print(f'?? {name}: {n} places',flush=True); continue
    src=f'./gmutsrc{os.getpid()}'; shutil.rmtree(src,ignore_errors=True); shutil.copytree('../../../kernels/cuda',src)
    open(f'{src}/{f}','w').write(t.replace(a,b))
    d=f'./gmut{os.getpid()}'; shutil.rmtree(d,ignore_errors=True)
    subprocess.run(['python3','gen.py',src,d],check=True); shutil.copy('gen_wgmma.cuh',d+'/wgmma.cuh')
    res=[]
    for c in cs.split():
        i,o=cfg[c]
        r=subprocess.run(['./build_gemm.sh',f'./gmutbin{os.getpid()}',d,i,*o],capture_output=True,text=True)
        if r.returncode: res.append(f'{c}: NO BUILD '+(re.search('error.*',r.stderr) or [''])[0][:150]); continue
        r=subprocess.run(['timeout','60',f'./gmutbin{os.getpid()}','1','25'],capture_output=True,text=True); out=r.stdout
        m=re.search(r'FAIL.*',out); res.append(f'{c}: '+(m.group(0)[:110] if m else 'SURVIVED rc %d %s'%(r.returncode,out[-80:].strip())))
    total+=1; ok=any('FAIL' in x for x in res); caught+=ok
    print(('caught   ' if ok else 'SURVIVED ')+name+' | '+' ; '.join(res),flush=True)
print(caught,'of',total)
