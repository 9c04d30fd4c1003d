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
 %c12_0 = phi double [0x0000000000000000, %g11], [%t29, %b12]
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
 %t23 = fptrunc double %c12_0 to float
 %t24 = insertelement <16 x float> poison, float %t23, i64 0
 %t25 = shufflevector <16 x float> %t24, <16 x float> poison, <16 x i32> zeroinitializer
 %t26 = fadd contract <16 x float> %t25, %t22
 %t27 = extractelement <16 x float> %t22, i64 15
 %t28 = fpext float %t27 to double
 %t29 = fadd contract double %c12_0, %t28
 %t30 = getelementptr float, ptr %t1, i64 %i12
 store <16 x float> %t26, ptr %t30, align 4
 %n12 = add nuw nsw i64 %i12, 16
 %l12 = icmp slt i64 %n12, %t9
 br i1 %l12, label %b12, label %x12
x12:
 br label %x11
x11:
 %t31 = phi double [0x0000000000000000, %g7], [%t29, %x12]
 %t32 = icmp slt i64 %t9, %t5
 br i1 %t32, label %g33, label %x33
g33:
 %t34 = sub i64 %t5, %t9
 %t35 = trunc i64 %t34 to i32
 %t36 = insertelement <16 x i32> poison, i32 %t35, i64 0
 %t37 = shufflevector <16 x i32> %t36, <16 x i32> poison, <16 x i32> zeroinitializer
 %t38 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %t37
 %t39 = getelementptr float, ptr %t3, i64 %t9
 %t40 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t39, i32 4, <16 x i1> %t38, <16 x float> zeroinitializer)
 %t41 = select <16 x i1> %t38, <16 x float> %t40, <16 x float> splat (float 0x0000000000000000)
 %t42 = shufflevector <16 x float> %t41, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 0, i32 16, i32 2, i32 16, i32 4, i32 16, i32 6, i32 16, i32 8, i32 16, i32 10, i32 16, i32 12, i32 16, i32 14>
 %t43 = fadd contract <16 x float> %t42, %t41
 %t44 = shufflevector <16 x float> %t43, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 16, i32 1, i32 1, i32 16, i32 16, i32 5, i32 5, i32 16, i32 16, i32 9, i32 9, i32 16, i32 16, i32 13, i32 13>
 %t45 = fadd contract <16 x float> %t44, %t43
 %t46 = shufflevector <16 x float> %t45, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 16, i32 16, i32 16, i32 3, i32 3, i32 3, i32 3, i32 16, i32 16, i32 16, i32 16, i32 11, i32 11, i32 11, i32 11>
 %t47 = fadd contract <16 x float> %t46, %t45
 %t48 = shufflevector <16 x float> %t47, <16 x float> splat (float 0x8000000000000000), <16 x i32> <i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 16, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7>
 %t49 = fadd contract <16 x float> %t48, %t47
 %t50 = fptrunc double %t31 to float
 %t51 = insertelement <16 x float> poison, float %t50, i64 0
 %t52 = shufflevector <16 x float> %t51, <16 x float> poison, <16 x i32> zeroinitializer
 %t53 = fadd contract <16 x float> %t52, %t49
 %t54 = extractelement <16 x float> %t49, i64 15
 %t55 = fpext float %t54 to double
 %t56 = fadd contract double %t31, %t55
 %t57 = getelementptr float, ptr %t1, i64 %t9
 call void @llvm.masked.store.v16f32.p0(<16 x float> %t53, ptr %t57, i32 4, <16 x i1> %t38)
 br label %x33
x33:
 %t58 = phi double [%t31, %x11], [%t56, %g33]
 br label %x7
x7:
 %t59 = phi double [0x0000000000000000, %entry], [%t58, %x33]
 %t60 = fptrunc double %t59 to float
 ret void
}
