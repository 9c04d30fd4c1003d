declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare <8 x float> @llvm.ldexp.v8f32.v8i32(<8 x float>, <8 x i32>)
define <8 x float> @vm_exp2_f32_8_o2(<8 x float> %x0) {
entry:
 %t1 = fcmp olt <8 x float> %x0, splat (float 0xC062E00000000000)
 %t2 = select <8 x i1> %t1, <8 x float> splat (float 0xC062E00000000000), <8 x float> %x0
 %t3 = fcmp ogt <8 x float> %t2, splat (float 0x4060200000000000)
 %t4 = select <8 x i1> %t3, <8 x float> splat (float 0x4060200000000000), <8 x float> %t2
 %t5 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t4, <8 x float> splat (float 0x3FF0000000000000), <8 x float> splat (float 0x4168000000000000))
 %t6 = fsub <8 x float> %t5, splat (float 0x4168000000000000)
 %t7 = fsub <8 x float> %t4, %t6
 %t8 = call <8 x float> @llvm.fma.v8f32(<8 x float> splat (float 0x3F24BFACA0000000), <8 x float> %t7, <8 x float> splat (float 0x3F55FBBC20000000))
 %t9 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t8, <8 x float> %t7, <8 x float> splat (float 0x3F83B21C60000000))
 %t10 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t9, <8 x float> %t7, <8 x float> splat (float 0x3FAC6ADA80000000))
 %t11 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t10, <8 x float> %t7, <8 x float> splat (float 0x3FCEBFBE60000000))
 %t12 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t11, <8 x float> %t7, <8 x float> splat (float 0x3FE62E4320000000))
 %t13 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t12, <8 x float> %t7, <8 x float> splat (float 0x3FF0000000000000))
 %t14 = bitcast <8 x float> %t5 to <8 x i32>
 %t15 = sub <8 x i32> %t14, splat (i32 1262485504)
 %t16 = call <8 x float> @llvm.ldexp.v8f32.v8i32(<8 x float> %t13, <8 x i32> %t15)
 ret <8 x float> %t16
}
