import subprocess,os,sys,shutil,re
cfg={}
for l in open('attention.txt'):
    n,r=l.rstrip('\n').split('|',1); i=r.index('}'); cfg[n]=(r[:i+1],r[i+2:])
K='hopper_attention.cuh';Lo='hopper_attention_load.cuh';C='hopper_attention_compute.cuh';F='hopper_attention_finish.cuh';J='hopper_attention_joined.cuh';W='hopper_attention_work.cuh'
M=[
('full_k count',K,'&s.full_k[i]), 32 * S::P + 1','&s.full_k[i]), 32 * S::P','128 192'),
('full_v count',K,'32 * S::P + (S::TMA ? 1 : 0)','32 * S::P','192tma'),
('full_v count-1',K,'32 * S::P + (S::TMA ? 1 : 0)','32 * S::P - 1 + (S::TMA ? 1 : 0)','64 128 192tma'),
('empty_k count',K,'FOUR_WARPS * S::G);','FOUR_WARPS * S::G - 1);','64 192'),
('empty_k by warps',K,'FOUR_WARPS * S::G);','FOUR_WARPS * S::G - 31);','64 192'),
('empty_v count',K,'(S::JOINED ? FOUR_WARPS : 4) * S::G','(S::JOINED ? FOUR_WARPS : 4) * S::G - 1','64 192 192tma 64join'),
('empty_q count',K,'FOUR_WARPS * S::C);','FOUR_WARPS * S::C - 32);','64 128'),
('parity of tiles',K,'n / 2 & 1;','n & 1;','64 128'),
('no empty_q wait',Lo,'mbarrier_wait(shared_address(&s.empty_q[at]), (n / 2 & 1) ^ 1);',';','64 192'),
('no empty_k wait',Lo,'mbarrier_wait(shared_address(&s.empty_k[at.slot]), at.phase);',';','64 192 192tma'),
('no empty_v wait',Lo,'mbarrier_wait(shared_address(&s.empty_v[at.slot]), at.phase);',';','64 128 192'),
('no empty_v wait, boxes',Lo,'mbarrier_wait(shared_address(&s.empty_v[v.at.slot]), v.at.phase);',';','192tma'),
('no empty_v wait, not whole',Lo,'mbarrier_wait(shared_address(&s.empty_v[k.at.slot]), k.at.phase);',';','192tma'),
('land: no wait',Lo,'copy_wait<PENDING>();',';','128'),
('land: no fence',Lo,'copy_wait<PENDING>();\n        proxy_fence();','copy_wait<PENDING>();','128'),
('land: too many pending',Lo,'land<1>();','land<2>();','128'),
('no last land',Lo,'            land<0>();\n',';','128'),
('boxes: no copy wait',Lo,'copy_wait<0>();\n            proxy_fence();','proxy_fence();','192tma'),
('boxes: no fence',Lo,'copy_wait<0>();\n            proxy_fence();','copy_wait<0>();','192tma'),
('boxes: v again',Lo,'v.block = -1;',';','192tma'),
('boxes: bytes',Lo,'(k.whole + (v.block >= 0)) * S::TILE','(k.block >= 0) * S::TILE','192tma'),
('boxes: whole always',Lo,'return (block + 1) * BLOCK <= of.length;','return true;','192tma'),
('later: one buffer',Lo,'s.later[i / 32 & 1]','s.later[0]','192 64cluster'),
('drawn: no barrier',Lo,'asm volatile("bar.sync 15, %0;" ::"n"(32 * P) : "memory");',';','192'),
('drawn: one place',Lo,'*s.drawn[n & 1]','s.drawn[0]','192 128'),
('item after arrival',Lo,'tile_item &item = *to.item;','tile_item &item = *to.item; mbarrier_arrive(to.full);','64'),
('item after arrival 2',Lo,'                item.stored = part_counter<S>{a}.first_stored(item);\n            mbarrier_arrive(to.full);','                item.stored = part_counter<S>{a}.first_stored(item);','64'),
('item before',Lo,'tile_item &item = *to.item;\n','mbarrier_arrive(to.full); tile_item &item = *to.item;\n','64'),
('own q: no wait',Lo,'copy_commit();\n        copy_wait<0>();\n        __syncwarp();','copy_commit(); __syncwarp();','64ov 64split'),
('own q: no syncwarp',Lo,'copy_commit();\n        copy_wait<0>();\n        __syncwarp();','copy_commit(); copy_wait<0>();','64ov 64split'),
('last v unannounced',Lo,'announce(shared_address(&s.full_v[at]));',';','192'),
('ring phase',Lo,'ring.slot = 0, ring.phase ^= 1;','ring.slot = 0;','64 192tma'),
('words after k',Lo,'            announce(full_k);','announce(full_k);','64'),
('pass_over: no v (overlap)',C,'            await_v_before();\n        leave_v(passed);','            ;\n        leave_v(passed);','192 192tma 128w128'),
('pass_over: no v',C,'        if constexpr (!S::OVERLAP)\n            mbarrier_wait(at(&smem::full_v) + slot * 8, phase);\n        advance();','advance();','128 192w128'),
('score: k back before mask',C,'        mask(r);\n        mbarrier_arrive(at(&smem::empty_k) + slot * 8);\n        if (S::JOINED','        mbarrier_arrive(at(&smem::empty_k) + slot * 8);\n mask(r);       if (S::JOINED','64 64ov'),
('overlap: k back before mask',C,'        mask(r);\n        mbarrier_arrive(at(&smem::empty_k) + slot * 8);\n        const bool','        mbarrier_arrive(at(&smem::empty_k) + slot * 8);\n mask(r);       const bool','192 192tma_sb'),
('overlap: k back before wait',C,'        wgmma_wait<1>();\n        pin(r.c);\n        mask(r);\n        mbarrier_arrive(at(&smem::empty_k) + slot * 8);','        pin(r.c);\n        mask(r);\n        mbarrier_arrive(at(&smem::empty_k) + slot * 8); wgmma_wait<1>();','192 192tma'),
('overlap: v back before wait',C,'        wgmma_wait<0>();\n        pin(r.o);\n        leave_v(held);\n        if (grown)','        leave_v(held); wgmma_wait<0>();\n        pin(r.o);\n        if (grown)','192 192tma'),
('overlap: wait<2>',C,'wgmma_wait<1>();','wgmma_wait<2>();','192'),
('context: v back before wait',C,'        wgmma_wait<0>();\n        pin(r.o);\n        leave_v(held);\n    }\n\n    /* Probabilities','        leave_v(held);\n wgmma_wait<0>();    }\n\n    /* Probabilities','64 192'),
('no fence of copies',C,'        if constexpr (!S::LANDS && !S::TMA)\n            proxy_fence();',';','64 192 64ov'),
('score: no v wait',C,'            mbarrier_wait(at(&smem::full_v) + slot * 8, phase);\n        softmax','            ;\n        softmax','64 128'),
('run: no v wait',C,'                await_v_before();\n            }\n            context_block','            }\n            context_block','192 192tma 64ov'),
('run: no last v wait',C,'            mbarrier_wait(last_v, last_parity); /* where no entry did */',';','192 192tma'),
('no k wait',C,'        while (i < entries) {\n            await_k();','        while (i < entries) {\n','192 64'),
('no k wait inner',C,'                while (i < entries) {\n                    await_k();','                while (i < entries) {\n','192 192tma'),
('advance: no parity',C,'slot = share, phase ^= 1;','slot = share;','64 64split'),
('advance: slot 0',C,'slot = share, phase ^= 1;','slot = 0, phase ^= 1;','64split'),
('prepare: no meet own q',C,'S::meet(group); /* who shares the rows has copied them */',';','64split 64ovw128'),
('prepare: no fence',C,'                proxy_fence();\n                S::meet(group);','                S::meet(group);','64 128'),
('prepare: no meet',C,'                proxy_fence();\n                S::meet(group);','                proxy_fence();','64 64split'),
('finish: no meet',F,'S::meet(by.group); /* before the context takes q\'s place */',';','64 128'),
('shares: no meet',F,'S::meet(group); /* one instruction for both: compute-sanitizer takes two for an error */',';','64split'),
('cluster: no meet',F,'            S::meet(0); /* all warps have read the keys */\n','','64cluster'),
('cluster: no first barrier',F,'        cluster_arrive();\n        cluster_wait();\n        if (rank == 0)','        if (rank == 0)','64cluster'),
('cluster: relaxed',F,'        cluster_arrive();\n        cluster_wait();\n        if (rank == 0)','        cluster_arrive_relaxed();\n        cluster_wait();\n        if (rank == 0)','64cluster'),
('joined: no meet 1',J,'            keys[tid] = 0;\n        S::meet(0);','            keys[tid] = 0;\n','64join'),
('joined: no meet 2',J,'        proxy_fence();\n        S::meet(0);','        proxy_fence();\n','64join'),
('joined: no fence',J,'        proxy_fence();\n        S::meet(0);','        S::meet(0);','64join'),
('joined: v back by warps',C,'            mbarrier_arrive(at(&smem::empty_v) + held * 8);','{ for (int i = 0; threadIdx.x % 32 == 0 && i < 32; i++) mbarrier_arrive(at(&smem::empty_v) + held * 8); }','64join'),
('no await_dependencies',K,'    await_dependencies();\n','','64 64cluster'),
('parts: no wait',F,'            part_counter<S>{a}.await_first(item);\n','','64ord 128ord'),
('parts: no fence',W,'                __threadfence();\n','                ;\n','64ord'),
('parts: wraps wrongly',W,'2 * warps() - 1','2 * warps()','64ord'),
('parts: fewer warps',W,'(4 * S::C)','(2 * S::C)','64ord'),
('parts: own wait without warp',W,'                __nanosleep(20);\n        __syncwarp();','                __nanosleep(20);','64ord'),
('draw: wraps wrongly','hopper_attention_tiles.cuh','count() - 1)','count())','64'),
('draw twice',Lo,'i == max(entries - 2, 0)','(i == max(entries - 2, 0) || i == 5)','64'),
('store: no syncwarp',F,'            store_matrix(shared_address(at), x);\n        }\n        __syncwarp();','            store_matrix(shared_address(at), x);\n        }\n','64 64ord'),
('weigh: no wait',F,'            copy_commit();\n            copy_wait<0>();\n            __syncwarp();','            copy_commit();\n            __syncwarp();','64ord'),
('weigh: no syncwarp',F,'            copy_wait<0>();\n            __syncwarp();','            copy_wait<0>();\n','64ord'),
('arrive before syncwarp',F,'        __syncwarp();\n        if (in_parts)\n            part','        if (in_parts)\n            part','64ord'),
('no syncthreads',K,'    __syncthreads();\n','','64'),
('marks later',Lo,'write_marks(s.marks[to.index], e, me.lane < t.entries, me.tid == 0);','','64'),
('fetch one entry late',Lo,'const bool fetches = i % 32 < CLUSTER && i >= 32;','const bool fetches = i % 32 == CLUSTER && i >= 32;','64'),
('empty_q before finish',K,'        finish<S>(a, io, step, rows.o, rows.state, tile);','        if constexpr (S::DRAWS) mbarrier_arrive(step.at(&smem::empty_q) + tile * 8); finish<S>(a, io, step, rows.o, rows.state, tile); if constexpr (0)','64 192'),
]
pick=sys.argv[1] if len(sys.argv)>1 else '.'
caught=0;total=0
for name,f,a,b,cs in M:
    if not re.search(pick,name): continue
    if a[0]=='*': arg=f'{f}@@{a[1:]}=>{b}'
    d=f'./mut{os.getpid()}'; shutil.rmtree(d,ignore_errors=True); os.makedirs(d)
    t=open(f'../../../kernels/cuda/{f}').read(); star=a[0]=='*'; aa=a[1:] if star else a
    n=t.count(aa)
    if n==0 or (n>1 and not star): print(f'?? {name}: {n} places',flush=True); continue
    src=f'./mutsrc{os.getpid()}'; shutil.rmtree(src,ignore_errors=True); shutil.copytree('../../../kernels/cuda',src)
    open(f'{src}/{f}','w').write(t.replace(aa,b))
    subprocess.run(['python3','gen.py',src,d],check=True); shutil.copy('gen_wgmma.cuh',d+'/wgmma.cuh')
    res=[]
    for c in cs.split():
        r=subprocess.run(['./build_att.sh',f'./mutbin{os.getpid()}',d,*cfg[c]],capture_output=True,text=True)
        if r.returncode: res.append(f'{c}: NO BUILD {r.stderr[:200]}'); continue
        try: r=subprocess.run(['timeout','200',f'./mutbin{os.getpid()}','1','14'],capture_output=True,text=True); out=r.stdout
        except Exception as e: out=str(e)
        m=re.search(r'FAIL.*',out); res.append(f'{c}: '+(m.group(0)[:110] if m else 'SURVIVED rc %d %s'%(r.returncode,out[-80:].strip())))
    total+=1; ok=any('FAIL' in x for x in res); caught+=ok
    print(('caught   ' if ok else 'SURVIVED ')+name+' | '+' ; '.join(res),flush=True)
print(caught,'of',total)
