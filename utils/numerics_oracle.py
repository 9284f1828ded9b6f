"""Bit-level numpy models of FP4 block quantizers (numpy only; written from formulas, see docs/Numerics.md).

nv(x, mode, amax=None): NVFP4, x (n,16) -> (scale bytes, codes). modes: te213 te214 te_fast te_test ao1 ao1old ao2
ao2old eager fi fi_exact vllm mslk modelopt cutlass te46 te46_448. Code 16 marks a NaN whose code is platform-defined.
mx_quant(x, mode): MXFP4, x (n,32); modes floor ceil even even_mslk rceil rceil_div.
Run as a script to re-check numerics_vectors.json."""
import numpy as np
np.seterr(all='ignore')
F=np.float32
FMAX=np.finfo(F).max
E2M1=np.array([0,.5,1,1.5,2,3,4,6],F)
R6=F(1)/F(6)
def bits(x): return np.asarray(x,F).view(np.uint32)
def fbits(u): return np.asarray(u,np.uint32).view(F)
def bf16(x):
    u=bits(np.atleast_1d(np.asarray(x,F))).astype(np.uint64)
    r=((u+0x7FFF+((u>>16)&1))&0xFFFF0000).astype(np.uint32).view(F).copy()
    n=np.isnan(np.atleast_1d(x)); r[n]=np.nan
    return r.reshape(np.shape(x))
# ---- E2M1 ------------------------------------------------------------------
def e2m1(x,nan=7,neg0=True):
    x=np.asarray(x,F); a=np.abs(x)
    c=((a>.25).astype(np.uint8)+(a>=.75)+(a>1.25)+(a>=1.75)+(a>2.5)+(a>=3.5)+(a>5)).astype(np.uint8)
    s=(np.signbit(x) if neg0 else (x<0)).astype(np.uint8)
    c=c|(s<<3)
    return np.where(np.isnan(x),np.uint8(nan),c)
def d2m1(c): v=E2M1[c&7]; return np.where(c&8,-v,v).astype(F)
# ---- E4M3 fn ---------------------------------------------------------------
def d4m3(b):
    b=np.asarray(b,np.uint8); e=(b>>3)&15; m=(b&7).astype(F)
    v=np.where(e==0,m*F(2**-9),(F(1)+m/F(8))*np.exp2(e.astype(F)-F(7))).astype(F)
    v=np.where((b&127)==127,F(np.nan),v)
    return np.where(b&128,-v,v).astype(F)
_T=d4m3(np.arange(127)).astype(np.float64)
_M=(_T[1:]+_T[:-1])/2
def e4m3(x,sat=True):
    x=np.asarray(x,F); a=np.abs(x).astype(np.float64)
    lo=np.searchsorted(_M,a,'left'); hi=np.searchsorted(_M,a,'right')
    c=np.where(lo==hi,lo,np.where(lo&1,hi,lo)).astype(np.uint8)   # tie -> even code
    if not sat: c=np.where(a>464,127,c)
    c=np.where(np.isnan(x),127,c).astype(np.uint8)
    return (c|(np.signbit(x)&~np.isnan(x)).astype(np.uint8)*128).astype(np.uint8)
# ---- E8M0 ------------------------------------------------------------------
def d8m0(b): b=np.asarray(b); return np.where(b==255,np.nan,np.exp2(b.astype(np.float64)-127)).astype(F)
def mx_byte(amax,mode):
    amax=np.asarray(amax,F); u=bits(amax).astype(np.int64)
    ex=(u>>23)&255; ma=u&0x7FFFFF; bad=~np.isfinite(amax)
    if mode=='floor': e=ex-2
    elif mode=='ceil': e=ex-2+(ma!=0)
    elif mode=='even': bad=bad|(u+(1<<21)>=0x7F800000); e=(((u+(1<<21))&0x7F800000)>>23)-2
    elif mode=='even_mslk': e=(((u+(1<<21)-1)&0x7F800000)>>23)-2
    elif mode in('rceil','rceil_div'):
        d=(amax*R6) if mode=='rceil' else (amax/F(6))
        w=bits(d.astype(F)).astype(np.int64); de=(w>>23)&255; dm=w&0x7FFFFF
        e=np.where(de==0,(dm>0x400000)*1,de+(dm!=0))
        e=np.minimum(e,254)
    else: raise KeyError(mode)
    e=np.clip(e,0,254)
    return np.where(bad,255,e).astype(np.uint8)
def mx_quant(x,mode):
    """torchao-eager shaped: NaN-propagating amax, multiply by 2^(127-byte)."""
    x=np.asarray(x,F).reshape(-1,32); am=np.max(np.abs(x),1)       # np.max propagates NaN
    b=mx_byte(am,mode); inv=np.where(b==255,np.nan,np.exp2(127.-b.astype(np.float64))).astype(F)
    y=(x*inv[:,None]).astype(F)
    return b,e2m1(y,nan=3)
# ---- NVFP4 -----------------------------------------------------------------
def tdiv2688(a): return F(F(2688)*F(F(1)/F(a)))   # torch: 2688.0/tensor == reciprocal then multiply
def nanmaxabs(x,axis=None):
    a=np.abs(x); a=np.where(np.isnan(a),F(0),a); return np.max(a,axis=axis).astype(F)
def te_senc(amax,fp8max=448):
    amax=F(amax); s=F(fp8max*6)/amax
    s=FMAX if np.isnan(s) else min(s,FMAX)
    return F(1) if (amax==0 or s==0) else F(s)
def fmin(a,b): return np.fmin(a,b).astype(F)
def nv(x,mode,amax=None):
    """x: (n,16) f32; amax: tensor amax (None -> from x). returns (scale bytes, codes)"""
    x=np.asarray(x,F).reshape(-1,16)
    drop=nanmaxabs(x,1); prop=np.max(np.abs(x),1).astype(F)
    ta_drop=F(nanmaxabs(x)) if amax is None else F(amax); ta_prop=F(np.max(np.abs(x))) if amax is None else F(amax)
    if mode in('te213','te214','te_test','te_jax'):
        g=te_senc(ta_drop); gd=F(1)/g
        s=(drop/F(6)*g) if mode!='te214' else drop*(g*R6)
        s8=e4m3(fmin(s.astype(F),FMAX)); f=d4m3(s8)
        enc=fmin(F(1)/(f*gd),FMAX)
        if mode=='te_test': enc=np.where(f==0,F(0),enc).astype(F)
        return s8,e2m1(x*enc[:,None])
    if mode=='te_fast':
        g=te_senc(ta_drop); s8=e4m3(fmin(drop*(g*R6),FMAX)); f=d4m3(s8)
        BM=F(3.3895314e38); c=bf16(fmin(g/f,BM)); y=bf16((x.astype(np.float64)*c[:,None].astype(np.float64)).astype(F))
        return s8,e2m1(y)
    if mode=='eager':
        g=tdiv2688(ta_prop); s=prop/F(6)*g
        s8=e4m3(np.clip(s,-448,448).astype(F),sat=False); enc=g/np.maximum(d4m3(s8),F(1e-12)); enc=np.where(np.isnan(d4m3(s8)),F(np.nan),enc).astype(F)
        return s8,e2m1(x*enc[:,None])   # the sign of inf*0 is the platform's: NaN counts as +6
    if mode in('ao1','ao1old'):
        s8=e4m3(np.clip(prop/F(6),F(2**-6),F(448)).astype(F),sat=False); f=d4m3(s8)
        y=x/f[:,None] if mode=='ao1old' else x*(F(1)/f)[:,None]
        return s8,e2m1(np.clip(y,-6,6),nan=16)   # 16: NaN code depends on the NaN payload/sign (3,4,b,c seen)
    if mode in('ao2','ao2old'):
        p=F(ta_prop/F(2688)); s8=e4m3(np.clip((prop/F(6))/p,F(2**-6),F(448)).astype(F),sat=False); f=d4m3(s8)
        y=x/(p*f)[:,None] if mode=='ao2old' else x*((F(1)/p)/f)[:,None]
        return s8,e2m1(np.clip(y,-6,6),nan=16)   # 16: NaN code depends on the NaN payload/sign (3,4,b,c seen)
    if mode in('fi','vllm','fi_exact'):
        g=tdiv2688(ta_drop)
        if mode=='fi_exact':
            s8=e4m3(drop*(g*R6)); f=d4m3(s8); enc=np.where(drop!=0,fmin(F(1)/(f*(F(1)/g)),FMAX),F(0)).astype(F)
        else:
            s8=e4m3(g*(drop*R6)); f=d4m3(s8); t=(drop!=0) if mode=='fi' else (f!=0)
            enc=np.where(t,F(1)/(f*(F(1)/g)),F(0)).astype(F)
        return s8,e2m1(x*enc[:,None])
    if mode=='mslk':
        g=F(2688)/ta_prop; s=np.clip(prop/F(6)*g,F(1.5258789e-05),F(448)).astype(F); s8=e4m3(s); enc=(g/d4m3(s8)).astype(F)
        return s8,e2m1(x*enc[:,None])
    if mode=='modelopt':
        p=F(ta_prop/F(2688)); s=(prop/(F(6)*p)).astype(F); s=np.where(s==0,F(1),s); s=np.maximum(s,F(2**-9)).astype(F)
        s8=e4m3(s,sat=False); y=x/(d4m3(s8)*p)[:,None]; return s8,e2m1(y,nan=7,neg0=False)
    if mode in('cutlass',):
        g=F(2688)/ta_prop; s8=e4m3(prop*(g*R6)); enc=(g*(F(1)/d4m3(s8))).astype(F); enc=np.where(np.isnan(enc),enc,np.minimum(enc,FMAX)).astype(F); return s8,e2m1(x*enc[:,None])   # CUTLASS SFD epilogue: NaN-propagating amax and min
    if mode in('fos6','te46','te46_448'):
        mx=448 if mode=='te46_448' else 256
        g=te_senc(ta_drop,mx); gd=F(1)/g; base=(drop/F(6)*g).astype(F)
        out=[]
        for m in((F(1.5),F(1))):
            s8=e4m3(fmin(base*m,F(448))); f=d4m3(s8); enc=fmin(F(1)/(f*gd),FMAX); q=e2m1(x*enc[:,None])
            v=((d2m1(q)*f[:,None]).astype(F)*ta_drop).astype(F)/F(6*mx); d=np.abs(v.astype(F)-x).astype(F)
            e=np.zeros(len(x),F)
            for i in range(16): e=(e+d[:,i]).astype(F)
            out.append((s8,q,e))
        pick=out[0][2]<out[1][2]
        return np.where(pick,out[0][0],out[1][0]),np.where(pick[:,None],out[0][1],out[1][1])
    raise KeyError(mode)
# ---- RHT -------------------------------------------------------------------
SIGN16=np.array([1,1,1,-1,1,-1,-1,-1,-1,-1,-1,1,-1,1,-1,-1],F)
def had(n): 
    h=np.ones((1,1))
    while len(h)<n: h=np.block([[h,h],[h,-h]])
    return h
def rht16(x,sign=SIGN16):
    """y_j = 0.25*sum_i s_i x_i H_ij, exact sum, one rounding to bf16 (x bf16)."""
    y=(np.asarray(x,np.float64).reshape(-1,16)*sign)@had(16)*.25
    return bf16(y.astype(F)).reshape(np.shape(x))
def fwht_f32(x,sign=None,order='up'):
    x=np.asarray(x,F); n=x.shape[-1]
    y=(x*sign).astype(F) if sign is not None else x.copy()
    st=[1<<k for k in range(n.bit_length()-1)]
    if order=='down': st=st[::-1]
    for h in st:
        y=y.reshape(-1,n//(2*h),2,h); a=y[:,:,0]; b=y[:,:,1]
        y=np.stack([a+b,a-b],2).astype(F).reshape(-1,n)
    return (y*F(n**-.5)).astype(F)
# ---- Philox ----------------------------------------------------------------
def philox(seed,subseq,offset,rounds=10):
    M=0xFFFFFFFF; k=[seed&M,(seed>>32)&M]; c=[offset&M,(offset>>32)&M,subseq&M,(subseq>>32)&M]
    for r in range(rounds):
        p0=0xD2511F53*c[0]; p1=0xCD9E8D57*c[2]
        c=[(p1>>32)^c[1]^k[0],p1&M,(p0>>32)^c[3]^k[1],p0&M]
        k=[(k[0]+0x9E3779B9)&M,(k[1]+0xBB67AE85)&M]
    return c
def e2m1_sr(x,byte):
    """TE software SR: 8-bit u, add u*step then floor on the grid of the sum."""
    x=np.asarray(x,F); a=np.abs(x); u=np.asarray(byte,F)/F(256)
    st=np.where(a<2,F(.5),np.where(a<4,F(1),F(2))); t=(u*st+a).astype(F)
    s2=np.where(t<2,F(.5),np.where(t<4,F(1),F(2))); q=np.minimum(np.floor(t/s2)*s2,F(6))
    c=np.searchsorted(E2M1,q).astype(np.uint8)|(np.signbit(x).astype(np.uint8)<<3)
    return np.where(np.isnan(x),7,c).astype(np.uint8)
# ---- layout ----------------------------------------------------------------
def swz_off(r,c,cols):
    CB=(cols+3)//4; return ((r//128)*CB+c//4)*512+(r%32)*16+((r%128)//32)*4+c%4
def pack(c): c=c.reshape(-1); return (c[0::2]|(c[1::2]<<4)).astype(np.uint8)
def hexs(a): return ''.join('%02x'%v for v in a)

if __name__=='__main__':
    import json,os
    J=json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)),'../unittests/Numerics/data/numerics_vectors.json'))); bad=0; n=0
    h=lambda r: np.array([int(v,16) for v in r],np.uint32).view(F)
    f=lambda c: ''.join('N' if v==16 else '%x'%v for v in c)
    for e in J['nv']:
        b=np.stack([h(r) for r in e['x_fp32_hex']])
        for m,w in e['model'].items():
            s,c=nv(b,m,e['tensor_amax_override']); n+=1; bad+=' '.join('%02x:%s'%(s[i],f(c[i])) for i in range(len(s)))!=w
    for e in J['mx']:
        for m,w in e['model'].items():
            s,c=mx_quant(h(e['x_fp32_hex']),m); n+=1; bad+='%02x:%s'%(s[0],f(c[0]))!=w
    print('checked',n,'bad',bad)
