declare <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x double>)
declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)
declare void @llvm.masked.store.v8f64.p0(<8 x double>, ptr, i32, <8 x i1>)
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
 %dummy = alloca <1 x i64>, align 64
 store <1 x i64> zeroinitializer, ptr %dummy, align 64
 %t1 = load ptr, ptr %args, align 8
 %t2 = getelementptr i64, ptr %args, i64 1
 %t3 = load ptr, ptr %t2, align 8
 %t4 = getelementptr i64, ptr %args, i64 2
 %t5 = load ptr, ptr %t4, align 8
 %t6 = getelementptr i64, ptr %args, i64 3
 %t7 = load i64, ptr %t6, align 8
 %t8 = getelementptr i64, ptr %args, i64 4
 %t9 = load i64, ptr %t8, align 8
 %t10 = icmp sgt i64 %t7, 0
 %t12 = udiv i64 %t7, 8
 %t13 = mul i64 %t12, 8
 %t21 = insertelement <8 x i64> poison, i64 %t9, i64 0
 %t22 = shufflevector <8 x i64> %t21, <8 x i64> poison, <8 x i32> zeroinitializer
 %t25 = add i64 %t7, -8
 %t26 = getelementptr double, ptr %t3, i64 %t25
 br i1 %t10, label %g11, label %x11
g11:
 %t14 = icmp sge i64 %t7, 8
 br i1 %t14, label %g15, label %x15
g15:
 br label %b16
b16:
 %i16 = phi i64 [0, %g15], [%n16, %b16]
 %t17 = getelementptr i32, ptr %t1, i64 %i16
 %t18 = load <8 x i32>, ptr %t17, align 4
 %t19 = sext <8 x i32> %t18 to <8 x i64>
 %t20 = getelementptr double, ptr %t3, <8 x i64> %t19
 %t23 = icmp slt <8 x i64> %t19, %t22
 %t24 = call <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr> %t20, i32 8, <8 x i1> %t23, <8 x double> zeroinitializer)
 %t27 = mul i64 %i16, -1
 %t28 = getelementptr double, ptr %t26, i64 %t27
 %t29 = insertelement <8 x i64> poison, i64 %i16, i64 0
 %t30 = shufflevector <8 x i64> %t29, <8 x i64> poison, <8 x i32> zeroinitializer
 %t31 = add <8 x i64> %t30, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
 %t32 = icmp slt <8 x i64> %t31, %t22
 %t33 = shufflevector <8 x i1> %t32, <8 x i1> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t34 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %t28, i32 8, <8 x i1> %t33, <8 x double> zeroinitializer)
 %t35 = shufflevector <8 x double> %t34, <8 x double> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t36 = fadd contract <8 x double> %t24, %t35
 %t37 = mul i64 %i16, 3
 %t38 = getelementptr double, ptr %t3, i64 %t37
 %t39 = getelementptr double, ptr %t38, <8 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21>
 %t40 = call <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr> %t39, i32 8, <8 x i1> splat (i1 true), <8 x double> zeroinitializer)
 %t41 = fadd contract <8 x double> %t36, %t40
 %t42 = icmp ne <8 x i32> %t18, splat (i32 7)
 %t43 = getelementptr double, ptr %t5, i64 %i16
 call void @llvm.masked.store.v8f64.p0(<8 x double> %t41, ptr %t43, i32 8, <8 x i1> %t42)
 %n16 = add nuw nsw i64 %i16, 8
 %l16 = icmp slt i64 %n16, %t13
 br i1 %l16, label %b16, label %x16
x16:
 br label %x15
x15:
 %t44 = icmp slt i64 %t13, %t7
 br i1 %t44, label %g45, label %x45
g45:
 br label %b46
b46:
 %i46 = phi i64 [%t13, %g45], [%n46, %k50]
 %t47 = getelementptr i32, ptr %t1, i64 %i46
 %t48 = load i32, ptr %t47, align 4
 %t49 = icmp ne i32 %t48, 7
 br i1 %t49, label %s50, label %k50
s50:
 %t51 = sext i32 %t48 to i64
 %t52 = getelementptr double, ptr %t3, i64 %t51
 %t53 = icmp slt i64 %t51, %t9
 %t54 = select i1 %t53, ptr %t52, ptr %dummy
 %t55 = load double, ptr %t54, align 8
 %t56 = add i64 %t7, -1
 %t57 = getelementptr double, ptr %t3, i64 %t56
 %t58 = mul i64 %i46, -1
 %t59 = getelementptr double, ptr %t57, i64 %t58
 %t60 = icmp slt i64 %i46, %t9
 %t61 = select i1 %t60, ptr %t59, ptr %dummy
 %t62 = load double, ptr %t61, align 8
 %t63 = fadd contract double %t55, %t62
 %t64 = mul i64 %i46, 3
 %t65 = getelementptr double, ptr %t3, i64 %t64
 %t66 = load double, ptr %t65, align 8
 %t67 = fadd contract double %t63, %t66
 %t68 = getelementptr double, ptr %t5, i64 %i46
 store double %t67, ptr %t68, align 8
 br label %k50
k50:
 %n46 = add nuw nsw i64 %i46, 1
 %l46 = icmp slt i64 %n46, %t7
 br i1 %l46, label %b46, label %x46
x46:
 br label %x45
x45:
 br label %x11
x11:
 ret void
}
