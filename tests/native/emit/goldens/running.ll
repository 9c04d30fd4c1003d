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
 %t8 = udiv i64 %t5, 16
 %t9 = mul i64 %t8, 16
 br i1 %t6, label %g7, label %x7
g7:
 %t10 = icmp sge i64 %t5, 16
 br i1 %t10, label %g11, label %x11
g11:
 br label %b12
b12:
 %i12 = phi i64 [0, %g11], [%n12, %b12]
 %c12_0 = phi float [0x0000000000000000, %g11], [%t27, %b12]
 %t13 = getelementptr float, ptr %t3, i64 %i12
 %t14 = load <16 x float>, ptr %t13, align 4
 %t15 = shufflevector <16 x float> %t14, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 0, i32 16, i32 2, i32 16, i32 4, i32 16, i32 6, i32 16, i32 8, i32 16, i32 10, i32 16, i32 12, i32 16, i32 14>
 %t16 = fadd contract <16 x float> %t15, %t14
 %t17 = shufflevector <16 x float> %t16, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 16, i32 1, i32 1, i32 16, i32 16, i32 5, i32 5, i32 16, i32 16, i32 9, i32 9, i32 16, i32 16, i32 13, i32 13>
 %t18 = fadd contract <16 x float> %t17, %t16
 %t19 = shufflevector <16 x float> %t18, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 16, i32 16, i32 16, i32 3, i32 3, i32 3, i32 3, i32 16, i32 16, i32 16, i32 16, i32 11, i32 11, i32 11, i32 11>
 %t20 = fadd contract <16 x float> %t19, %t18
 %t21 = shufflevector <16 x float> %t20, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7>
 %t22 = fadd contract <16 x float> %t21, %t20
 %t23 = insertelement <16 x float> poison, float %c12_0, i64 0
 %t24 = shufflevector <16 x float> %t23, <16 x float> poison, <16 x i32> zeroinitializer
 %t25 = fadd contract <16 x float> %t24, %t22
 %t26 = extractelement <16 x float> %t22, i64 15
 %t27 = fadd contract float %c12_0, %t26
 %t28 = getelementptr float, ptr %t1, i64 %i12
 store <16 x float> %t25, ptr %t28, align 4
 %n12 = add nuw nsw i64 %i12, 16
 %l12 = icmp slt i64 %n12, %t9
 br i1 %l12, label %b12, label %x12
x12:
 br label %x11
x11:
 %t29 = phi float [0x0000000000000000, %g7], [%t27, %x12]
 %t30 = icmp slt i64 %t9, %t5
 br i1 %t30, label %g31, label %x31
g31:
 %t32 = sub i64 %t5, %t9
 %t33 = trunc i64 %t32 to i32
 %t34 = insertelement <16 x i32> poison, i32 %t33, i64 0
 %t35 = shufflevector <16 x i32> %t34, <16 x i32> poison, <16 x i32> zeroinitializer
 %t36 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %t35
 %t37 = getelementptr float, ptr %t3, i64 %t9
 %t38 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t37, i32 4, <16 x i1> %t36, <16 x float> zeroinitializer)
 %t39 = select <16 x i1> %t36, <16 x float> %t38, <16 x float> splat (float 0x0000000000000000)
 %t40 = shufflevector <16 x float> %t39, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 0, i32 16, i32 2, i32 16, i32 4, i32 16, i32 6, i32 16, i32 8, i32 16, i32 10, i32 16, i32 12, i32 16, i32 14>
 %t41 = fadd contract <16 x float> %t40, %t39
 %t42 = shufflevector <16 x float> %t41, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 16, i32 1, i32 1, i32 16, i32 16, i32 5, i32 5, i32 16, i32 16, i32 9, i32 9, i32 16, i32 16, i32 13, i32 13>
 %t43 = fadd contract <16 x float> %t42, %t41
 %t44 = shufflevector <16 x float> %t43, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 16, i32 16, i32 16, i32 3, i32 3, i32 3, i32 3, i32 16, i32 16, i32 16, i32 16, i32 11, i32 11, i32 11, i32 11>
 %t45 = fadd contract <16 x float> %t44, %t43
 %t46 = shufflevector <16 x float> %t45, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7>
 %t47 = fadd contract <16 x float> %t46, %t45
 %t48 = insertelement <16 x float> poison, float %t29, i64 0
 %t49 = shufflevector <16 x float> %t48, <16 x float> poison, <16 x i32> zeroinitializer
 %t50 = fadd contract <16 x float> %t49, %t47
 %t51 = extractelement <16 x float> %t47, i64 15
 %t52 = fadd contract float %t29, %t51
 %t53 = getelementptr float, ptr %t1, i64 %t9
 call void @llvm.masked.store.v16f32.p0(<16 x float> %t50, ptr %t53, i32 4, <16 x i1> %t36)
 br label %x31
x31:
 %t54 = phi float [%t29, %x11], [%t52, %g31]
 br label %x7
x7:
 %t55 = phi float [0x0000000000000000, %entry], [%t54, %x31]
 ret void
}
