declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)
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
 %t13 = mul i64 %i12, 2
 %t14 = getelementptr float, ptr %t1, i64 %t13
 %t15 = load <16 x float>, ptr %t14, align 4
 %t16 = shufflevector <16 x float> %t15, <16 x float> poison, <8 x i32> <i32 0, i32 2, i32 4, i32 6, i32 8, i32 10, i32 12, i32 14>
 %t17 = shufflevector <16 x float> %t15, <16 x float> poison, <8 x i32> <i32 1, i32 3, i32 5, i32 7, i32 9, i32 11, i32 13, i32 15>
 %t18 = fneg <8 x float> %t17
 %t19 = shufflevector <8 x float> %t16, <8 x float> %t18, <16 x i32> <i32 0, i32 8, i32 1, i32 9, i32 2, i32 10, i32 3, i32 11, i32 4, i32 12, i32 5, i32 13, i32 6, i32 14, i32 7, i32 15>
 %t20 = getelementptr float, ptr %t3, i64 %t13
 store <16 x float> %t19, ptr %t20, align 4
 %n12 = add nuw nsw i64 %i12, 8
 %l12 = icmp slt i64 %n12, %t9
 br i1 %l12, label %b12, label %x12
x12:
 br label %x11
x11:
 %t21 = icmp slt i64 %t9, %t5
 br i1 %t21, label %g22, label %x22
g22:
 br label %b23
b23:
 %i23 = phi i64 [%t9, %g22], [%n23, %b23]
 %t24 = sub i64 %t5, %i23
 %t25 = trunc i64 %t24 to i32
 %t26 = insertelement <8 x i32> poison, i32 %t25, i64 0
 %t27 = shufflevector <8 x i32> %t26, <8 x i32> poison, <8 x i32> zeroinitializer
 %t28 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t27
 %t29 = shufflevector <8 x i1> %t28, <8 x i1> poison, <16 x i32> <i32 0, i32 0, i32 1, i32 1, i32 2, i32 2, i32 3, i32 3, i32 4, i32 4, i32 5, i32 5, i32 6, i32 6, i32 7, i32 7>
 %t30 = mul i64 %i23, 2
 %t31 = getelementptr float, ptr %t1, i64 %t30
 %t32 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t31, i32 4, <16 x i1> %t29, <16 x float> zeroinitializer)
 %t33 = shufflevector <16 x float> %t32, <16 x float> poison, <8 x i32> <i32 0, i32 2, i32 4, i32 6, i32 8, i32 10, i32 12, i32 14>
 %t34 = shufflevector <16 x float> %t32, <16 x float> poison, <8 x i32> <i32 1, i32 3, i32 5, i32 7, i32 9, i32 11, i32 13, i32 15>
 %t35 = fneg <8 x float> %t34
 %t36 = shufflevector <8 x float> %t33, <8 x float> %t35, <16 x i32> <i32 0, i32 8, i32 1, i32 9, i32 2, i32 10, i32 3, i32 11, i32 4, i32 12, i32 5, i32 13, i32 6, i32 14, i32 7, i32 15>
 %t37 = shufflevector <8 x i1> %t28, <8 x i1> poison, <16 x i32> <i32 0, i32 0, i32 1, i32 1, i32 2, i32 2, i32 3, i32 3, i32 4, i32 4, i32 5, i32 5, i32 6, i32 6, i32 7, i32 7>
 %t38 = getelementptr float, ptr %t3, i64 %t30
 call void @llvm.masked.store.v16f32.p0(<16 x float> %t36, ptr %t38, i32 4, <16 x i1> %t37)
 %n23 = add nuw nsw i64 %i23, 8
 %l23 = icmp slt i64 %n23, %t5
 br i1 %l23, label %b23, label %x23
x23:
 br label %x22
x22:
 br label %x7
x7:
 ret void
}
