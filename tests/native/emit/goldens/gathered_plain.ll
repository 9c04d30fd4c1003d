declare <24 x double> @llvm.masked.load.v24f64.p0(ptr, i32, <24 x i1>, <24 x double>)
declare <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x double>)
declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.masked.store.v8f64.p0(<8 x double>, ptr, i32, <8 x i1>)
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
 %dummy = alloca <8 x i64>, align 64
 store <8 x i64> zeroinitializer, ptr %dummy, align 64
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
 %t68 = icmp slt i64 %i16, %t9
 %t69 = add i64 %i16, 7
 %t70 = icmp slt i64 %t69, %t9
 %t71 = or i1 %t68, %t70
 %t72 = select i1 %t71, ptr %t60, ptr %dummy
 %t73 = shufflevector <8 x i1> %t67, <8 x i1> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t74 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %t72, i32 8, <8 x i1> %t73, <8 x double> zeroinitializer)
 %t75 = shufflevector <8 x double> %t74, <8 x double> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t76 = fadd contract <8 x double> %t56, %t75
 %t77 = mul i64 %i16, 3
 %t78 = getelementptr double, ptr %t3, i64 %t77
 %t79 = call <24 x double> @llvm.masked.load.v24f64.p0(ptr %t78, i32 8, <24 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false>, <24 x double> zeroinitializer)
 %t80 = shufflevector <24 x double> %t79, <24 x double> poison, <8 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21>
 %t81 = fadd contract <8 x double> %t76, %t80
 %t82 = icmp ne <8 x i32> %t47, splat (i32 7)
 %t83 = getelementptr double, ptr %t5, i64 %i16
 call void @llvm.masked.store.v8f64.p0(<8 x double> %t81, ptr %t83, i32 8, <8 x i1> %t82)
 br label %x20
x20:
 %n16 = add nuw nsw i64 %i16, 8
 %l16 = icmp slt i64 %n16, %t13
 br i1 %l16, label %b16, label %x16
x16:
 br label %x15
x15:
 %t84 = icmp slt i64 %t13, %t7
 br i1 %t84, label %g85, label %x85
g85:
 br label %b86
b86:
 %i86 = phi i64 [%t13, %g85], [%n86, %k90]
 %t87 = getelementptr i32, ptr %t1, i64 %i86
 %t88 = load i32, ptr %t87, align 4
 %t89 = icmp ne i32 %t88, 7
 br i1 %t89, label %s90, label %k90
s90:
 %t91 = sext i32 %t88 to i64
 %t92 = getelementptr double, ptr %t3, i64 %t91
 %t93 = icmp slt i64 %t91, %t9
 %t94 = select i1 %t93, ptr %t92, ptr %dummy
 %t95 = load double, ptr %t94, align 8
 %t96 = add i64 %t7, -1
 %t97 = getelementptr double, ptr %t3, i64 %t96
 %t98 = mul i64 %i86, -1
 %t99 = getelementptr double, ptr %t97, i64 %t98
 %t100 = icmp slt i64 %i86, %t9
 %t101 = select i1 %t100, ptr %t99, ptr %dummy
 %t102 = load double, ptr %t101, align 8
 %t103 = fadd contract double %t95, %t102
 %t104 = mul i64 %i86, 3
 %t105 = getelementptr double, ptr %t3, i64 %t104
 %t106 = load double, ptr %t105, align 8
 %t107 = fadd contract double %t103, %t106
 %t108 = getelementptr double, ptr %t5, i64 %i86
 store double %t107, ptr %t108, align 8
 br label %k90
k90:
 %n86 = add nuw nsw i64 %i86, 1
 %l86 = icmp slt i64 %n86, %t7
 br i1 %l86, label %b86, label %x86
x86:
 br label %x85
x85:
 br label %x11
x11:
 ret void
}
