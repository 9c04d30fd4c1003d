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
 %t28 = add i64 %t7, -8
 %t29 = getelementptr double, ptr %t3, i64 %t28
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
 %t24 = insertelement <8 x ptr> poison, ptr %dummy, i64 0
 %t25 = shufflevector <8 x ptr> %t24, <8 x ptr> poison, <8 x i32> zeroinitializer
 %t26 = select <8 x i1> %t23, <8 x ptr> %t20, <8 x ptr> %t25
 %t27 = call <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr> %t26, i32 8, <8 x i1> splat (i1 true), <8 x double> zeroinitializer)
 %t30 = mul i64 %i16, -1
 %t31 = getelementptr double, ptr %t29, i64 %t30
 %t32 = insertelement <8 x i64> poison, i64 %i16, i64 0
 %t33 = shufflevector <8 x i64> %t32, <8 x i64> poison, <8 x i32> zeroinitializer
 %t34 = add <8 x i64> %t33, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
 %t35 = icmp slt <8 x i64> %t34, %t22
 %t36 = shufflevector <8 x i1> %t35, <8 x i1> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t37 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %t31, i32 8, <8 x i1> %t36, <8 x double> zeroinitializer)
 %t38 = shufflevector <8 x double> %t37, <8 x double> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t39 = fadd contract <8 x double> %t27, %t38
 %t40 = mul i64 %i16, 3
 %t41 = getelementptr double, ptr %t3, i64 %t40
 %t42 = getelementptr double, ptr %t41, <8 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21>
 %t43 = call <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr> %t42, i32 8, <8 x i1> splat (i1 true), <8 x double> zeroinitializer)
 %t44 = fadd contract <8 x double> %t39, %t43
 %t45 = icmp ne <8 x i32> %t18, splat (i32 7)
 %t46 = getelementptr double, ptr %t5, i64 %i16
 call void @llvm.masked.store.v8f64.p0(<8 x double> %t44, ptr %t46, i32 8, <8 x i1> %t45)
 %n16 = add nuw nsw i64 %i16, 8
 %l16 = icmp slt i64 %n16, %t13
 br i1 %l16, label %b16, label %x16
x16:
 br label %x15
x15:
 %t47 = icmp slt i64 %t13, %t7
 br i1 %t47, label %g48, label %x48
g48:
 br label %b49
b49:
 %i49 = phi i64 [%t13, %g48], [%n49, %k53]
 %t50 = getelementptr i32, ptr %t1, i64 %i49
 %t51 = load i32, ptr %t50, align 4
 %t52 = icmp ne i32 %t51, 7
 br i1 %t52, label %s53, label %k53
s53:
 %t54 = sext i32 %t51 to i64
 %t55 = getelementptr double, ptr %t3, i64 %t54
 %t56 = icmp slt i64 %t54, %t9
 %t57 = select i1 %t56, ptr %t55, ptr %dummy
 %t58 = load double, ptr %t57, align 8
 %t59 = add i64 %t7, -1
 %t60 = getelementptr double, ptr %t3, i64 %t59
 %t61 = mul i64 %i49, -1
 %t62 = getelementptr double, ptr %t60, i64 %t61
 %t63 = icmp slt i64 %i49, %t9
 %t64 = select i1 %t63, ptr %t62, ptr %dummy
 %t65 = load double, ptr %t64, align 8
 %t66 = fadd contract double %t58, %t65
 %t67 = mul i64 %i49, 3
 %t68 = getelementptr double, ptr %t3, i64 %t67
 %t69 = load double, ptr %t68, align 8
 %t70 = fadd contract double %t66, %t69
 %t71 = getelementptr double, ptr %t5, i64 %i49
 store double %t70, ptr %t71, align 8
 br label %k53
k53:
 %n49 = add nuw nsw i64 %i49, 1
 %l49 = icmp slt i64 %n49, %t7
 br i1 %l49, label %b49, label %x49
x49:
 br label %x48
x48:
 br label %x11
x11:
 ret void
}
