declare <24 x double> @llvm.masked.load.v24f64.p0(ptr, i32, <24 x i1>, <24 x double>)
declare <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x double>)
declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)
declare <8 x i32> @llvm.masked.load.v8i32.p0(ptr, i32, <8 x i1>, <8 x i32>)
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
 %t36 = icmp slt i64 %i16, %t9
 %t37 = add i64 %i16, 7
 %t38 = icmp slt i64 %t37, %t9
 %t39 = or i1 %t36, %t38
 %t40 = select i1 %t39, ptr %t28, ptr %dummy
 %t41 = shufflevector <8 x i1> %t35, <8 x i1> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t42 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %t40, i32 8, <8 x i1> %t41, <8 x double> zeroinitializer)
 %t43 = shufflevector <8 x double> %t42, <8 x double> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t44 = fadd contract <8 x double> %t24, %t43
 %t45 = mul i64 %i16, 3
 %t46 = getelementptr double, ptr %t3, i64 %t45
 %t47 = call <24 x double> @llvm.masked.load.v24f64.p0(ptr %t46, i32 8, <24 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false>, <24 x double> zeroinitializer)
 %t48 = shufflevector <24 x double> %t47, <24 x double> poison, <8 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21>
 %t49 = fadd contract <8 x double> %t44, %t48
 %t50 = icmp ne <8 x i32> %t18, splat (i32 7)
 %t51 = getelementptr double, ptr %t5, i64 %i16
 call void @llvm.masked.store.v8f64.p0(<8 x double> %t49, ptr %t51, i32 8, <8 x i1> %t50)
 %n16 = add nuw nsw i64 %i16, 8
 %l16 = icmp slt i64 %n16, %t13
 br i1 %l16, label %b16, label %x16
x16:
 br label %x15
x15:
 %t52 = icmp slt i64 %t13, %t7
 br i1 %t52, label %g53, label %x53
g53:
 br label %b54
b54:
 %i54 = phi i64 [%t13, %g53], [%n54, %b54]
 %t55 = sub i64 %t7, %i54
 %t56 = trunc i64 %t55 to i32
 %t57 = insertelement <8 x i32> poison, i32 %t56, i64 0
 %t58 = shufflevector <8 x i32> %t57, <8 x i32> poison, <8 x i32> zeroinitializer
 %t59 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t58
 %t60 = getelementptr i32, ptr %t1, i64 %i54
 %t61 = call <8 x i32> @llvm.masked.load.v8i32.p0(ptr %t60, i32 4, <8 x i1> %t59, <8 x i32> zeroinitializer)
 %t62 = sext <8 x i32> %t61 to <8 x i64>
 %t63 = getelementptr double, ptr %t3, <8 x i64> %t62
 %t64 = icmp slt <8 x i64> %t62, %t22
 %t65 = and <8 x i1> %t64, %t59
 %t66 = call <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr> %t63, i32 8, <8 x i1> %t65, <8 x double> zeroinitializer)
 %t67 = mul i64 %i54, -1
 %t68 = getelementptr double, ptr %t26, i64 %t67
 %t69 = sub i64 %t9, %i54
 %t70 = call i64 @llvm.smax.i64(i64 %t69, i64 -1)
 %t71 = call i64 @llvm.smin.i64(i64 %t70, i64 8)
 %t72 = trunc i64 %t71 to i32
 %t73 = insertelement <8 x i32> poison, i32 %t72, i64 0
 %t74 = shufflevector <8 x i32> %t73, <8 x i32> poison, <8 x i32> zeroinitializer
 %t75 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t74
 %t76 = and <8 x i1> %t75, %t59
 %t77 = icmp slt i64 %i54, %t9
 %t78 = add i64 %i54, 7
 %t79 = icmp slt i64 %t78, %t9
 %t80 = or i1 %t77, %t79
 %t81 = select i1 %t80, ptr %t68, ptr %dummy
 %t82 = shufflevector <8 x i1> %t76, <8 x i1> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t83 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %t81, i32 8, <8 x i1> %t82, <8 x double> zeroinitializer)
 %t84 = shufflevector <8 x double> %t83, <8 x double> poison, <8 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
 %t85 = fadd contract <8 x double> %t66, %t84
 %t86 = mul i64 %i54, 3
 %t87 = getelementptr double, ptr %t3, i64 %t86
 %t88 = getelementptr double, ptr %t87, <8 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21>
 %t89 = call <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr> %t88, i32 8, <8 x i1> %t59, <8 x double> zeroinitializer)
 %t90 = fadd contract <8 x double> %t85, %t89
 %t91 = icmp ne <8 x i32> %t61, splat (i32 7)
 %t92 = and <8 x i1> %t91, %t59
 %t93 = getelementptr double, ptr %t5, i64 %i54
 call void @llvm.masked.store.v8f64.p0(<8 x double> %t90, ptr %t93, i32 8, <8 x i1> %t92)
 %n54 = add nuw nsw i64 %i54, 8
 %l54 = icmp slt i64 %n54, %t7
 br i1 %l54, label %b54, label %x54
x54:
 br label %x53
x53:
 br label %x11
x11:
 ret void
}
