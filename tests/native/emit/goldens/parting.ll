declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)
declare <8 x float> @llvm.sqrt.v8f32(<8 x float>)
declare i1 @llvm.vector.reduce.or.v8i1(<8 x i1>)
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
 %i12 = phi i64 [0, %g11], [%n12, %x22]
 %t13 = getelementptr float, ptr %t1, i64 %i12
 %t14 = load <8 x float>, ptr %t13, align 4
 %t15 = fcmp ogt <8 x float> %t14, splat (float 0x0000000000000000)
 %t16 = xor <8 x i1> %t15, splat (i1 true)
 %t17 = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %t15)
 br i1 %t17, label %g18, label %x18
g18:
 %t19 = call <8 x float> @llvm.sqrt.v8f32(<8 x float> %t14)
 br label %x18
x18:
 %t20 = phi <8 x float> [zeroinitializer, %b12], [%t19, %g18]
 %t21 = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %t16)
 br i1 %t21, label %g22, label %x22
g22:
 br label %x22
x22:
 %t23 = phi <8 x float> [zeroinitializer, %x18], [%t14, %g22]
 %t24 = select <8 x i1> %t15, <8 x float> %t20, <8 x float> %t23
 %t25 = getelementptr float, ptr %t3, i64 %i12
 store <8 x float> %t24, ptr %t25, align 4
 %n12 = add nuw nsw i64 %i12, 8
 %l12 = icmp slt i64 %n12, %t9
 br i1 %l12, label %b12, label %x12
x12:
 br label %x11
x11:
 %t26 = icmp slt i64 %t9, %t5
 br i1 %t26, label %g27, label %x27
g27:
 br label %b28
b28:
 %i28 = phi i64 [%t9, %g27], [%n28, %x45]
 %t29 = sub i64 %t5, %i28
 %t30 = trunc i64 %t29 to i32
 %t31 = insertelement <8 x i32> poison, i32 %t30, i64 0
 %t32 = shufflevector <8 x i32> %t31, <8 x i32> poison, <8 x i32> zeroinitializer
 %t33 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t32
 %t34 = getelementptr float, ptr %t1, i64 %i28
 %t35 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %t34, i32 4, <8 x i1> %t33, <8 x float> zeroinitializer)
 %t36 = fcmp ogt <8 x float> %t35, splat (float 0x0000000000000000)
 %t37 = xor <8 x i1> %t36, splat (i1 true)
 %t38 = and <8 x i1> %t36, %t33
 %t39 = and <8 x i1> %t37, %t33
 %t40 = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %t38)
 br i1 %t40, label %g41, label %x41
g41:
 %t42 = call <8 x float> @llvm.sqrt.v8f32(<8 x float> %t35)
 br label %x41
x41:
 %t43 = phi <8 x float> [zeroinitializer, %b28], [%t42, %g41]
 %t44 = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %t39)
 br i1 %t44, label %g45, label %x45
g45:
 br label %x45
x45:
 %t46 = phi <8 x float> [zeroinitializer, %x41], [%t35, %g45]
 %t47 = select <8 x i1> %t36, <8 x float> %t43, <8 x float> %t46
 %t48 = getelementptr float, ptr %t3, i64 %i28
 call void @llvm.masked.store.v8f32.p0(<8 x float> %t47, ptr %t48, i32 4, <8 x i1> %t33)
 %n28 = add nuw nsw i64 %i28, 8
 %l28 = icmp slt i64 %n28, %t5
 br i1 %l28, label %b28, label %x28
x28:
 br label %x27
x27:
 br label %x7
x7:
 ret void
}
