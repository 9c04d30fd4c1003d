declare <8 x i32> @llvm.masked.gather.v8i32.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x i32>)
declare <8 x i64> @llvm.umax.v8i64(<8 x i64>, <8 x i64>)
declare void @llvm.masked.store.v8i32.p0(<8 x i32>, ptr, i32, <8 x i1>)
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
 %t1 = load ptr, ptr %args, align 8
 %t2 = getelementptr i64, ptr %args, i64 1
 %t3 = load ptr, ptr %t2, align 8
 %t4 = getelementptr i64, ptr %args, i64 2
 %t5 = load i64, ptr %t4, align 8
 %t6 = getelementptr i64, ptr %args, i64 3
 %t7 = load i64, ptr %t6, align 8
 %t8 = icmp sgt i64 %t5, 0
 %t10 = udiv i64 %t5, 8
 %t11 = mul i64 %t10, 8
 %t19 = insertelement <8 x i64> poison, i64 %t7, i64 0
 %t20 = shufflevector <8 x i64> %t19, <8 x i64> poison, <8 x i32> zeroinitializer
 br i1 %t8, label %g9, label %x9
g9:
 %t12 = icmp sge i64 %t5, 8
 br i1 %t12, label %g13, label %x13
g13:
 br label %b14
b14:
 %i14 = phi i64 [0, %g13], [%n14, %b14]
 %t15 = insertelement <8 x i64> poison, i64 %i14, i64 0
 %t16 = shufflevector <8 x i64> %t15, <8 x i64> poison, <8 x i32> zeroinitializer
 %t17 = add <8 x i64> %t16, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
 %t18 = udiv <8 x i64> %t17, splat (i64 5)
 %t21 = call <8 x i64> @llvm.umax.v8i64(<8 x i64> %t20, <8 x i64> splat (i64 1))
 %t22 = uitofp <8 x i64> %t18 to <8 x double>
 %t23 = uitofp <8 x i64> %t21 to <8 x double>
 %t24 = fdiv <8 x double> %t22, %t23
 %t25 = fptosi <8 x double> %t24 to <8 x i64>
 %t26 = mul <8 x i64> %t25, %t21
 %t27 = sub <8 x i64> %t18, %t26
 %t28 = mul <8 x i64> %t27, splat (i64 5)
 %t29 = urem <8 x i64> %t17, splat (i64 5)
 %t30 = add <8 x i64> %t28, %t29
 %t31 = getelementptr i32, ptr %t1, <8 x i64> %t30
 %t32 = call <8 x i32> @llvm.masked.gather.v8i32.v8p0(<8 x ptr> %t31, i32 4, <8 x i1> splat (i1 true), <8 x i32> zeroinitializer)
 %t33 = sdiv <8 x i32> splat (i32 100), %t32
 %t34 = getelementptr i32, ptr %t3, i64 %i14
 store <8 x i32> %t33, ptr %t34, align 4
 %n14 = add nuw nsw i64 %i14, 8
 %l14 = icmp slt i64 %n14, %t11
 br i1 %l14, label %b14, label %x14
x14:
 br label %x13
x13:
 %t35 = icmp slt i64 %t11, %t5
 br i1 %t35, label %g36, label %x36
g36:
 br label %b37
b37:
 %i37 = phi i64 [%t11, %g36], [%n37, %b37]
 %t38 = sub i64 %t5, %i37
 %t39 = trunc i64 %t38 to i32
 %t40 = insertelement <8 x i32> poison, i32 %t39, i64 0
 %t41 = shufflevector <8 x i32> %t40, <8 x i32> poison, <8 x i32> zeroinitializer
 %t42 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t41
 %t43 = insertelement <8 x i64> poison, i64 %i37, i64 0
 %t44 = shufflevector <8 x i64> %t43, <8 x i64> poison, <8 x i32> zeroinitializer
 %t45 = add <8 x i64> %t44, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
 %t46 = udiv <8 x i64> %t45, splat (i64 5)
 %t47 = call <8 x i64> @llvm.umax.v8i64(<8 x i64> %t20, <8 x i64> splat (i64 1))
 %t48 = uitofp <8 x i64> %t46 to <8 x double>
 %t49 = uitofp <8 x i64> %t47 to <8 x double>
 %t50 = fdiv <8 x double> %t48, %t49
 %t51 = fptosi <8 x double> %t50 to <8 x i64>
 %t52 = mul <8 x i64> %t51, %t47
 %t53 = sub <8 x i64> %t46, %t52
 %t54 = mul <8 x i64> %t53, splat (i64 5)
 %t55 = urem <8 x i64> %t45, splat (i64 5)
 %t56 = add <8 x i64> %t54, %t55
 %t57 = getelementptr i32, ptr %t1, <8 x i64> %t56
 %t58 = call <8 x i32> @llvm.masked.gather.v8i32.v8p0(<8 x ptr> %t57, i32 4, <8 x i1> %t42, <8 x i32> zeroinitializer)
 %t59 = select <8 x i1> %t42, <8 x i32> %t58, <8 x i32> splat (i32 1)
 %t60 = sdiv <8 x i32> splat (i32 100), %t59
 %t61 = getelementptr i32, ptr %t3, i64 %i37
 call void @llvm.masked.store.v8i32.p0(<8 x i32> %t60, ptr %t61, i32 4, <8 x i1> %t42)
 %n37 = add nuw nsw i64 %i37, 8
 %l37 = icmp slt i64 %n37, %t5
 br i1 %l37, label %b37, label %x37
x37:
 br label %x36
x36:
 br label %x9
x9:
 ret void
}
