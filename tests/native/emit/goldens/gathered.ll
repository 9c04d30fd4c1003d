declare <24 x double> @llvm.masked.load.v24f64.p0(ptr, i32, <24 x i1>, <24 x double>)
declare <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x double>)
declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)
declare <8 x i32> @llvm.masked.load.v8i32.p0(ptr, i32, <8 x i1>, <8 x i32>)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.masked.store.v8f64.p0(<8 x double>, ptr, i32, <8 x i1>)
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
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
 %t29 = sub i64 %t9, %i16
 %t30 = call i64 @llvm.smax.i64(i64 %t29, i64 -1)
 %t31 = call i64 @llvm.smin.i64(i64 %t30, i64 8)
 %t32 = trunc i64 %t31 to i32
 %t33 = insertelement <8 x i32> poison, i32 %t32, i64 0
 %t34 = shufflevector <8 x i32> %t33, <8 x i32> poison, <8 x i32> zeroinitializer
 %t35 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t34
 %t36 = shufflevector <8 x i1> %t35, <8 x i1> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t37 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %t28, i32 8, <8 x i1> %t36, <8 x double> zeroinitializer)
 %t38 = shufflevector <8 x double> %t37, <8 x double> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t39 = fadd contract <8 x double> %t24, %t38
 %t40 = mul i64 %i16, 3
 %t41 = getelementptr double, ptr %t3, i64 %t40
 %t42 = call <24 x double> @llvm.masked.load.v24f64.p0(ptr %t41, i32 8, <24 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false>, <24 x double> zeroinitializer)
 %t43 = shufflevector <24 x double> %t42, <24 x double> poison, <8 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21>
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
 %i49 = phi i64 [%t13, %g48], [%n49, %b49]
 %t50 = sub i64 %t7, %i49
 %t51 = trunc i64 %t50 to i32
 %t52 = insertelement <8 x i32> poison, i32 %t51, i64 0
 %t53 = shufflevector <8 x i32> %t52, <8 x i32> poison, <8 x i32> zeroinitializer
 %t54 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t53
 %t55 = getelementptr i32, ptr %t1, i64 %i49
 %t56 = call <8 x i32> @llvm.masked.load.v8i32.p0(ptr %t55, i32 4, <8 x i1> %t54, <8 x i32> zeroinitializer)
 %t57 = sext <8 x i32> %t56 to <8 x i64>
 %t58 = getelementptr double, ptr %t3, <8 x i64> %t57
 %t59 = icmp slt <8 x i64> %t57, %t22
 %t60 = and <8 x i1> %t59, %t54
 %t61 = call <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr> %t58, i32 8, <8 x i1> %t60, <8 x double> zeroinitializer)
 %t62 = mul i64 %i49, -1
 %t63 = getelementptr double, ptr %t26, i64 %t62
 %t64 = sub i64 %t9, %i49
 %t65 = call i64 @llvm.smax.i64(i64 %t64, i64 -1)
 %t66 = call i64 @llvm.smin.i64(i64 %t65, i64 8)
 %t67 = trunc i64 %t66 to i32
 %t68 = insertelement <8 x i32> poison, i32 %t67, i64 0
 %t69 = shufflevector <8 x i32> %t68, <8 x i32> poison, <8 x i32> zeroinitializer
 %t70 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t69
 %t71 = and <8 x i1> %t70, %t54
 %t72 = shufflevector <8 x i1> %t71, <8 x i1> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t73 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %t63, i32 8, <8 x i1> %t72, <8 x double> zeroinitializer)
 %t74 = shufflevector <8 x double> %t73, <8 x double> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t75 = fadd contract <8 x double> %t61, %t74
 %t76 = mul i64 %i49, 3
 %t77 = getelementptr double, ptr %t3, i64 %t76
 %t78 = getelementptr double, ptr %t77, <8 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21>
 %t79 = call <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr> %t78, i32 8, <8 x i1> %t54, <8 x double> zeroinitializer)
 %t80 = fadd contract <8 x double> %t75, %t79
 %t81 = icmp ne <8 x i32> %t56, splat (i32 7)
 %t82 = and <8 x i1> %t81, %t54
 %t83 = getelementptr double, ptr %t5, i64 %i49
 call void @llvm.masked.store.v8f64.p0(<8 x double> %t80, ptr %t83, i32 8, <8 x i1> %t82)
 %n49 = add nuw nsw i64 %i49, 8
 %l49 = icmp slt i64 %n49, %t7
 br i1 %l49, label %b49, label %x49
x49:
 br label %x48
x48:
 br label %x11
x11:
 ret void
}
