declare <24 x double> @llvm.masked.load.v24f64.p0(ptr, i32, <24 x i1>, <24 x double>)
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
 %t18 = add i64 %t9, -1
 br i1 %t10, label %g11, label %x11
g11:
 %t14 = icmp sge i64 %t7, 8
 br i1 %t14, label %g15, label %x15
g15:
 br label %b16
b16:
 %i16 = phi i64 [0, %g15], [%n16, %x20]
 %t17 = add i64 %i16, 7
 %t19 = icmp sle i64 %t17, %t18
 br i1 %t19, label %t20, label %e20
t20:
 %t21 = getelementptr i32, ptr %t1, i64 %i16
 %t22 = load <8 x i32>, ptr %t21, align 4
 %t23 = sext <8 x i32> %t22 to <8 x i64>
 %t24 = getelementptr double, ptr %t3, <8 x i64> %t23
 %t25 = insertelement <8 x i64> poison, i64 %t9, i64 0
 %t26 = shufflevector <8 x i64> %t25, <8 x i64> poison, <8 x i32> zeroinitializer
 %t27 = icmp slt <8 x i64> %t23, %t26
 %t28 = insertelement <8 x ptr> poison, ptr %dummy, i64 0
 %t29 = shufflevector <8 x ptr> %t28, <8 x ptr> poison, <8 x i32> zeroinitializer
 %t30 = select <8 x i1> %t27, <8 x ptr> %t24, <8 x ptr> %t29
 %t31 = call <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr> %t30, i32 8, <8 x i1> splat (i1 true), <8 x double> zeroinitializer)
 %t32 = add i64 %t7, -8
 %t33 = getelementptr double, ptr %t3, i64 %t32
 %t34 = mul i64 %i16, -1
 %t35 = getelementptr double, ptr %t33, i64 %t34
 %t36 = load <8 x double>, ptr %t35, align 8
 %t37 = shufflevector <8 x double> %t36, <8 x double> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t38 = fadd contract <8 x double> %t31, %t37
 %t39 = mul i64 %i16, 3
 %t40 = getelementptr double, ptr %t3, i64 %t39
 %t41 = call <24 x double> @llvm.masked.load.v24f64.p0(ptr %t40, i32 8, <24 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false>, <24 x double> zeroinitializer)
 %t42 = shufflevector <24 x double> %t41, <24 x double> poison, <8 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21>
 %t43 = fadd contract <8 x double> %t38, %t42
 %t44 = icmp ne <8 x i32> %t22, splat (i32 7)
 %t45 = getelementptr double, ptr %t5, i64 %i16
 call void @llvm.masked.store.v8f64.p0(<8 x double> %t43, ptr %t45, i32 8, <8 x i1> %t44)
 br label %x20
e20:
 %t46 = getelementptr i32, ptr %t1, i64 %i16
 %t47 = load <8 x i32>, ptr %t46, align 4
 %t48 = sext <8 x i32> %t47 to <8 x i64>
 %t49 = getelementptr double, ptr %t3, <8 x i64> %t48
 %t50 = insertelement <8 x i64> poison, i64 %t9, i64 0
 %t51 = shufflevector <8 x i64> %t50, <8 x i64> poison, <8 x i32> zeroinitializer
 %t52 = icmp slt <8 x i64> %t48, %t51
 %t53 = insertelement <8 x ptr> poison, ptr %dummy, i64 0
 %t54 = shufflevector <8 x ptr> %t53, <8 x ptr> poison, <8 x i32> zeroinitializer
 %t55 = select <8 x i1> %t52, <8 x ptr> %t49, <8 x ptr> %t54
 %t56 = call <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr> %t55, i32 8, <8 x i1> splat (i1 true), <8 x double> zeroinitializer)
 %t57 = add i64 %t7, -8
 %t58 = getelementptr double, ptr %t3, i64 %t57
 %t59 = mul i64 %i16, -1
 %t60 = getelementptr double, ptr %t58, i64 %t59
 %t61 = insertelement <8 x i64> poison, i64 %i16, i64 0
 %t62 = shufflevector <8 x i64> %t61, <8 x i64> poison, <8 x i32> zeroinitializer
 %t63 = add <8 x i64> %t62, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
 %t64 = icmp slt <8 x i64> %t63, %t51
 %t65 = shufflevector <8 x i1> %t64, <8 x i1> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t66 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %t60, i32 8, <8 x i1> %t65, <8 x double> zeroinitializer)
 %t67 = shufflevector <8 x double> %t66, <8 x double> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t68 = fadd contract <8 x double> %t56, %t67
 %t69 = mul i64 %i16, 3
 %t70 = getelementptr double, ptr %t3, i64 %t69
 %t71 = call <24 x double> @llvm.masked.load.v24f64.p0(ptr %t70, i32 8, <24 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false>, <24 x double> zeroinitializer)
 %t72 = shufflevector <24 x double> %t71, <24 x double> poison, <8 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21>
 %t73 = fadd contract <8 x double> %t68, %t72
 %t74 = icmp ne <8 x i32> %t47, splat (i32 7)
 %t75 = getelementptr double, ptr %t5, i64 %i16
 call void @llvm.masked.store.v8f64.p0(<8 x double> %t73, ptr %t75, i32 8, <8 x i1> %t74)
 br label %x20
x20:
 %n16 = add nuw nsw i64 %i16, 8
 %l16 = icmp slt i64 %n16, %t13
 br i1 %l16, label %b16, label %x16
x16:
 br label %x15
x15:
 %t76 = icmp slt i64 %t13, %t7
 br i1 %t76, label %g77, label %x77
g77:
 br label %b78
b78:
 %i78 = phi i64 [%t13, %g77], [%n78, %k82]
 %t79 = getelementptr i32, ptr %t1, i64 %i78
 %t80 = load i32, ptr %t79, align 4
 %t81 = icmp ne i32 %t80, 7
 br i1 %t81, label %s82, label %k82
s82:
 %t83 = sext i32 %t80 to i64
 %t84 = getelementptr double, ptr %t3, i64 %t83
 %t85 = icmp slt i64 %t83, %t9
 %t86 = select i1 %t85, ptr %t84, ptr %dummy
 %t87 = load double, ptr %t86, align 8
 %t88 = add i64 %t7, -1
 %t89 = getelementptr double, ptr %t3, i64 %t88
 %t90 = mul i64 %i78, -1
 %t91 = getelementptr double, ptr %t89, i64 %t90
 %t92 = icmp slt i64 %i78, %t9
 %t93 = select i1 %t92, ptr %t91, ptr %dummy
 %t94 = load double, ptr %t93, align 8
 %t95 = fadd contract double %t87, %t94
 %t96 = mul i64 %i78, 3
 %t97 = getelementptr double, ptr %t3, i64 %t96
 %t98 = load double, ptr %t97, align 8
 %t99 = fadd contract double %t95, %t98
 %t100 = getelementptr double, ptr %t5, i64 %i78
 store double %t99, ptr %t100, align 8
 br label %k82
k82:
 %n78 = add nuw nsw i64 %i78, 1
 %l78 = icmp slt i64 %n78, %t7
 br i1 %l78, label %b78, label %x78
x78:
 br label %x77
x77:
 br label %x11
x11:
 ret void
}
