declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare <8 x float> @llvm.ldexp.v8f32.v8i32(<8 x float>, <8 x i32>)
declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)
declare <8 x float> @vm_exp2_f32_8(<8 x float>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
 %t1 = load ptr, ptr %args, align 8
 %t2 = getelementptr i64, ptr %args, i64 1
 %t3 = load ptr, ptr %t2, align 8
 %t4 = getelementptr i64, ptr %args, i64 2
 %t5 = load i64, ptr %t4, align 8
 %t6 = icmp sgt i64 %t5, 0
 %t8 = udiv i64 %t5, 8
 %t9 = mul i64 %t8, 8
 br i1 %t6, label %g7, label %x7
g7:
 %t10 = icmp sge i64 %t5, 8
 br i1 %t10, label %g11, label %x11
g11:
 br label %b12
b12:
 %i12 = phi i64 [0, %g11], [%n12, %b12]
 %t13 = getelementptr float, ptr %t1, i64 %i12
 %t14 = load <8 x float>, ptr %t13, align 4
 %t15 = fcmp olt <8 x float> %t14, splat (float 0xC062E00000000000)
 %t16 = select <8 x i1> %t15, <8 x float> splat (float 0xC062E00000000000), <8 x float> %t14
 %t17 = fcmp ogt <8 x float> %t16, splat (float 0x4060200000000000)
 %t18 = select <8 x i1> %t17, <8 x float> splat (float 0x4060200000000000), <8 x float> %t16
 %t19 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t18, <8 x float> splat (float 0x3FF0000000000000), <8 x float> splat (float 0x4168000000000000))
 %t20 = fsub <8 x float> %t19, splat (float 0x4168000000000000)
 %t21 = fsub <8 x float> %t18, %t20
 %t22 = call <8 x float> @llvm.fma.v8f32(<8 x float> splat (float 0x3F24BFACA0000000), <8 x float> %t21, <8 x float> splat (float 0x3F55FBBC20000000))
 %t23 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t22, <8 x float> %t21, <8 x float> splat (float 0x3F83B21C60000000))
 %t24 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t23, <8 x float> %t21, <8 x float> splat (float 0x3FAC6ADA80000000))
 %t25 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t24, <8 x float> %t21, <8 x float> splat (float 0x3FCEBFBE60000000))
 %t26 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t25, <8 x float> %t21, <8 x float> splat (float 0x3FE62E4320000000))
 %t27 = call <8 x float> @llvm.fma.v8f32(<8 x float> %t26, <8 x float> %t21, <8 x float> splat (float 0x3FF0000000000000))
 %t28 = bitcast <8 x float> %t19 to <8 x i32>
 %t29 = sub <8 x i32> %t28, splat (i32 1262485504)
 %t30 = call <8 x float> @llvm.ldexp.v8f32.v8i32(<8 x float> %t27, <8 x i32> %t29)
 %t31 = getelementptr float, ptr %t3, i64 %i12
 store <8 x float> %t30, ptr %t31, align 4
 %n12 = add nuw nsw i64 %i12, 8
 %l12 = icmp slt i64 %n12, %t9
 br i1 %l12, label %b12, label %x12
x12:
 br label %x11
x11:
 %t32 = icmp slt i64 %t9, %t5
 br i1 %t32, label %g33, label %x33
g33:
 br label %b34
b34:
 %i34 = phi i64 [%t9, %g33], [%n34, %b34]
 %t35 = sub i64 %t5, %i34
 %t36 = trunc i64 %t35 to i32
 %t37 = insertelement <8 x i32> poison, i32 %t36, i64 0
 %t38 = shufflevector <8 x i32> %t37, <8 x i32> poison, <8 x i32> zeroinitializer
 %t39 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t38
 %t40 = getelementptr float, ptr %t1, i64 %i34
 %t41 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %t40, i32 4, <8 x i1> %t39, <8 x float> zeroinitializer)
 %t42 = call <8 x float> @vm_exp2_f32_8(<8 x float> %t41)
 %t43 = getelementptr float, ptr %t3, i64 %i34
 call void @llvm.masked.store.v8f32.p0(<8 x float> %t42, ptr %t43, i32 4, <8 x i1> %t39)
 %n34 = add nuw nsw i64 %i34, 8
 %l34 = icmp slt i64 %n34, %t5
 br i1 %l34, label %b34, label %x34
x34:
 br label %x33
x33:
 br label %x7
x7:
 ret void
}
