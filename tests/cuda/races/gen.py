#!/usr/bin/env python3
# gen.py SRC OUT [MUT...]: copies kernels' headers, turns each asm into a call of the simulator.  MUT: file:old=>new
import re,sys,os
src,out=sys.argv[1:3]
muts={}
for m in sys.argv[3:]:
    f,rest=m.split('@@',1); a,b=rest.split('=>',1); muts.setdefault(f,[]).append((a,b))
NAMES=[("mbarrier.init.","mb_init"),("mbarrier.arrive.expect_tx","mb_expect"),("cp.async.mbarrier.arrive","mb_arrive_copies"),
("mbarrier.arrive.shared::cluster","mb_arrive_cluster"),("mbarrier.arrive.","mb_arrive"),("mbarrier.try_wait","mb_wait"),
("fence.mbarrier_init","nop"),("fence.proxy.async","proxy_fence"),
("barrier.cluster.arrive.release","cl_arrive_release"),("barrier.cluster.arrive.relaxed","cl_arrive_relaxed"),("barrier.cluster.wait","cl_wait"),
("mapa.","mapa"),("ld.shared::cluster.v4","ld_v4"),("st.async","st_async"),
("cp.async.bulk.shared::cluster.shared::cta","bulk_s2s"),("cp.async.bulk.shared::cluster.global","bulk_g2s"),
("@valid ld.relaxed","ld_relaxed_if"),("ld.relaxed","ld_relaxed"),("st.relaxed","st_relaxed"),
("ldmatrix","ldmatrix"),("stmatrix","stmatrix"),
("cp.async.cg.shared.global [%0], [%1], 16, %2","cp_async16s"),("cp.async.cg.shared.global [%0], [%1], 16;","cp_async16"),
("cp.async.ca","cp_async4s"),("multicast","tma_multicast"),("cp.async.bulk.tensor.4d","tma_dealt"),("cache_hint","tma_hint"),
("cp.async.bulk.tensor.2d.shared","tma_load"),("cp.async.bulk.tensor.2d.global","tma_store"),
("cp.async.bulk.commit_group","bulk_commit"),("cp.async.bulk.wait_group.read","bulk_wait_read"),("prefetch","nop"),
("cp.async.commit_group","cp_commit"),("cp.async.wait_group","cp_wait"),("ld.acquire","ld_acquire"),
("griddepcontrol.wait","grid_wait"),("griddepcontrol.launch","nop"),
("bar.sync 15","bar15"),("bar.sync","bar_sync"),("bar.red","bar_red"),
("ld.shared.u16","ld_any"),("ld.shared.f32","ld_any"),("ld.shared.u32","ld_any"),("ld.shared.v4","ld_v4"),
("st.shared.v4","st_v4"),("st.shared.v2","st_v2"),("st.shared.","st_any"),("mov.b64 %0, {%1, %2}","pack64"),
("mad.wide","mad_wide"),("add.rn","same"),("setmaxnreg","nop")]
def strip_parts(body):
    parts=[[]];depth=0;i=0;cur=''
    while i<len(body):
        c=body[i]
        if c=='"':
            j=i+1
            while body[j]!='"': j+=2 if body[j]=='\\' else 1
            cur+=body[i:j+1]; i=j+1; continue
        if c in '([{': depth+=1
        if c in ')]}': depth-=1
        if c==':' and depth==0:
            parts[-1]=cur; parts.append(''); cur=''; i+=1; continue
        cur+=c; i+=1
    parts[-1]=cur
    return parts
def operands(s):
    res=[];i=0
    while True:
        m=re.compile(r'\s*,?\s*"([^"]*)"\s*\(').match(s,i)
        if not m: break
        j=m.end();d=1
        while d: d+= (s[j]=='(')-(s[j]==')'); j+=1
        res.append(s[m.end():j-1]); i=j
    return res
def conv(text):
    o='';i=0
    rx=re.compile(r'\basm( volatile)?\(')
    while True:
        m=rx.search(text,i)
        if not m: return o+text[i:]
        o+=text[i:m.start()]
        j=m.end();d=1
        while d:
            if text[j]=='"':
                j+=1
                while text[j]!='"': j+=2 if text[j]=='\\' else 1
                j+=1; continue
            d+=(text[j]=='(')-(text[j]==')'); j+=1
        body=text[m.end():j-1]
        p=strip_parts(body)
        t=''.join(re.findall(r'"((?:[^"\\]|\\.)*)"',p[0]))
        outs=operands(p[1]) if len(p)>1 else []
        ins=operands(p[2]) if len(p)>2 else []
        name=None
        for k,v in NAMES:
            if k in t: name=v;break
        if name is None: name='zero' if outs else 'nop'; 
        if name in('zero','nop') and 'prefetch' not in t and t: sys.stderr.write(f"  {name}: {t[:60]!r}\n") if os.environ.get('V') else None
        if name in('zero','nop'): o+=f"(::sim::use({', '.join(ins)}), ::sim::{name}({', '.join(outs)}))"
        else: o+=f"::sim::{name}({', '.join(outs+ins)})"
        i=j
os.makedirs(out,exist_ok=True)
n=0
for f in os.listdir(src):
    if not f.endswith(('.h','.cuh')) or f=='wgmma.cuh': continue
    t=open(os.path.join(src,f)).read()
    for a,b in muts.get(f,[]):
        nth=None
        if t.count(a)<1: sys.exit(f"mutation not found in {f}: {a}")
        if t.count(a)>1 and not a.startswith('*'): sys.exit(f"mutation ambiguous in {f}: {a} x{t.count(a)}")
        t=t.replace(a,b); n+=1
    open(os.path.join(out,f),'w').write(conv(t) if f.endswith('.cuh') else t)
