declare <24 x double> @llvm.masked.load.v24f64.p0(ptr, i32, <24 x i1>, <24 x double>)
declare <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x double>)
declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
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
 %t61 = sub i64 %t9, %i16
 %t62 = call i64 @llvm.smax.i64(i64 %t61, i64 -1)
 %t63 = call i64 @llvm.smin.i64(i64 %t62, i64 8)
 %t64 = trunc i64 %t63 to i32
 %t65 = insertelement <8 x i32> poison, i32 %t64, i64 0
 %t66 = shufflevector <8 x i32> %t65, <8 x i32> poison, <8 x i32> zeroinitializer
 %t67 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t66
 %t68 = shufflevector <8 x i1> %t67, <8 x i1> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t69 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %t60, i32 8, <8 x i1> %t68, <8 x double> zeroinitializer)
 %t70 = shufflevector <8 x double> %t69, <8 x double> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t71 = fadd contract <8 x double> %t56, %t70
 %t72 = mul i64 %i16, 3
 %t73 = getelementptr double, ptr %t3, i64 %t72
 %t74 = call <24 x double> @llvm.masked.load.v24f64.p0(ptr %t73, i32 8, <24 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false>, <24 x double> zeroinitializer)
 %t75 = shufflevector <24 x double> %t74, <24 x double> poison, <8 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21>
 %t76 = fadd contract <8 x double> %t71, %t75
 %t77 = icmp ne <8 x i32> %t47, splat (i32 7)
 %t78 = getelementptr double, ptr %t5, i64 %i16
 call void @llvm.masked.store.v8f64.p0(<8 x double> %t76, ptr %t78, i32 8, <8 x i1> %t77)
 br label %x20
x20:
 %n16 = add nuw nsw i64 %i16, 8
 %l16 = icmp slt i64 %n16, %t13
 br i1 %l16, label %b16, label %x16
x16:
 br label %x15
x15:
 %t79 = icmp slt i64 %t13, %t7
 br i1 %t79, label %g80, label %x80
g80:
 br label %b81
b81:
 %i81 = phi i64 [%t13, %g80], [%n81, %k85]
 %t82 = getelementptr i32, ptr %t1, i64 %i81
 %t83 = load i32, ptr %t82, align 4
 %t84 = icmp ne i32 %t83, 7
 br i1 %t84, label %s85, label %k85
s85:
 %t86 = sext i32 %t83 to i64
 %t87 = getelementptr double, ptr %t3, i64 %t86
 %t88 = icmp slt i64 %t86, %t9
 %t89 = select i1 %t88, ptr %t87, ptr %dummy
 %t90 = load double, ptr %t89, align 8
 %t91 = add i64 %t7, -1
 %t92 = getelementptr double, ptr %t3, i64 %t91
 %t93 = mul i64 %i81, -1
 %t94 = getelementptr double, ptr %t92, i64 %t93
 %t95 = icmp slt i64 %i81, %t9
 %t96 = select i1 %t95, ptr %t94, ptr %dummy
 %t97 = load double, ptr %t96, align 8
 %t98 = fadd contract double %t90, %t97
 %t99 = mul i64 %i81, 3
 %t100 = getelementptr double, ptr %t3, i64 %t99
 %t101 = load double, ptr %t100, align 8
 %t102 = fadd contract double %t98, %t101
 %t103 = getelementptr double, ptr %t5, i64 %i81
 store double %t102, ptr %t103, align 8
 br label %k85
k85:
 %n81 = add nuw nsw i64 %i81, 1
 %l81 = icmp slt i64 %n81, %t7
 br i1 %l81, label %b81, label %x81
x81:
 br label %x80
x80:
 br label %x11
x11:
 ret void
}
