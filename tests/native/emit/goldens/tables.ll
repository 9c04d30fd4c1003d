declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)
@const.0.kernel = private unnamed_addr constant [16 x i8] c"\00\00\00\00\00\00\80\3F\00\00\00\40\00\00\40\40", align 64
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
 %a0 = alloca [4 x <8 x float>], align 64
 %t1 = load ptr, ptr %args, align 8
 %t2 = getelementptr i64, ptr %args, i64 1
 %t3 = load i64, ptr %t2, align 8
 %t4 = icmp sgt i64 %t3, 0
 %t6 = udiv i64 %t3, 8
 %t7 = mul i64 %t6, 8
 br i1 %t4, label %g5, label %x5
g5:
 %t8 = icmp sge i64 %t3, 8
 br i1 %t8, label %g9, label %x9
g9:
 br label %b10
b10:
 %i10 = phi i64 [0, %g9], [%n10, %x11]
 %t16 = insertelement <8 x i64> poison, i64 %i10, i64 0
 %t17 = shufflevector <8 x i64> %t16, <8 x i64> poison, <8 x i32> zeroinitializer
 %t18 = add <8 x i64> %t17, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
 %t19 = sitofp <8 x i64> %t18 to <8 x float>
 br label %b11
b11:
 %i11 = phi i64 [0, %b10], [%n11, %b11]
 %t12 = getelementptr float, ptr @const.0.kernel, i64 %i11
 %t13 = load float, ptr %t12, align 4
 %t14 = insertelement <8 x float> poison, float %t13, i64 0
 %t15 = shufflevector <8 x float> %t14, <8 x float> poison, <8 x i32> zeroinitializer
 %t20 = fmul contract <8 x float> %t15, %t19
 %t21 = getelementptr <8 x float>, ptr %a0, i64 %i11
 store <8 x float> %t20, ptr %t21, align 4
 %n11 = add nuw nsw i64 %i11, 1
 %l11 = icmp slt i64 %n11, 4
 br i1 %l11, label %b11, label %x11
x11:
 %t22 = load <8 x float>, ptr %a0, align 4
 %t23 = getelementptr <8 x float>, ptr %a0, i64 3
 %t24 = load <8 x float>, ptr %t23, align 4
 %t25 = fadd contract <8 x float> %t22, %t24
 %t26 = getelementptr float, ptr %t1, i64 %i10
 store <8 x float> %t25, ptr %t26, align 4
 %n10 = add nuw nsw i64 %i10, 8
 %l10 = icmp slt i64 %n10, %t7
 br i1 %l10, label %b10, label %x10
x10:
 br label %x9
x9:
 %t27 = icmp slt i64 %t7, %t3
 br i1 %t27, label %g28, label %x28
g28:
 br label %b29
b29:
 %i29 = phi i64 [%t7, %g28], [%n29, %x35]
 %t30 = sub i64 %t3, %i29
 %t31 = trunc i64 %t30 to i32
 %t32 = insertelement <8 x i32> poison, i32 %t31, i64 0
 %t33 = shufflevector <8 x i32> %t32, <8 x i32> poison, <8 x i32> zeroinitializer
 %t34 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t33
 %t40 = insertelement <8 x i64> poison, i64 %i29, i64 0
 %t41 = shufflevector <8 x i64> %t40, <8 x i64> poison, <8 x i32> zeroinitializer
 %t42 = add <8 x i64> %t41, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
 %t43 = sitofp <8 x i64> %t42 to <8 x float>
 br label %b35
b35:
 %i35 = phi i64 [0, %b29], [%n35, %b35]
 %t36 = getelementptr float, ptr @const.0.kernel, i64 %i35
 %t37 = load float, ptr %t36, align 4
 %t38 = insertelement <8 x float> poison, float %t37, i64 0
 %t39 = shufflevector <8 x float> %t38, <8 x float> poison, <8 x i32> zeroinitializer
 %t44 = fmul contract <8 x float> %t39, %t43
 %t45 = getelementptr <8 x float>, ptr %a0, i64 %i35
 store <8 x float> %t44, ptr %t45, align 4
 %n35 = add nuw nsw i64 %i35, 1
 %l35 = icmp slt i64 %n35, 4
 br i1 %l35, label %b35, label %x35
x35:
 %t46 = load <8 x float>, ptr %a0, align 4
 %t47 = getelementptr <8 x float>, ptr %a0, i64 3
 %t48 = load <8 x float>, ptr %t47, align 4
 %t49 = fadd contract <8 x float> %t46, %t48
 %t50 = getelementptr float, ptr %t1, i64 %i29
 call void @llvm.masked.store.v8f32.p0(<8 x float> %t49, ptr %t50, i32 4, <8 x i1> %t34)
 %n29 = add nuw nsw i64 %i29, 8
 %l29 = icmp slt i64 %n29, %t3
 br i1 %l29, label %b29, label %x29
x29:
 br label %x28
x28:
 br label %x5
x5:
 ret void
}
