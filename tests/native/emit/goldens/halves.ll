declare <8 x half> @llvm.masked.load.v8f16.p0(ptr, i32, <8 x i1>, <8 x half>)
declare void @llvm.masked.store.v8f16.p0(<8 x half>, ptr, i32, <8 x i1>)
declare void @llvm.masked.store.v8i16.p0(<8 x i16>, ptr, i32, <8 x i1>)
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
 %t1 = load ptr, ptr %args, align 8
 %t2 = getelementptr i64, ptr %args, i64 1
 %t3 = load ptr, ptr %t2, align 8
 %t4 = getelementptr i64, ptr %args, i64 2
 %t5 = load ptr, ptr %t4, align 8
 %t6 = getelementptr i64, ptr %args, i64 3
 %t7 = load i64, ptr %t6, align 8
 %t8 = icmp sgt i64 %t7, 0
 %t10 = udiv i64 %t7, 8
 %t11 = mul i64 %t10, 8
 br i1 %t8, label %g9, label %x9
g9:
 %t12 = icmp sge i64 %t7, 8
 br i1 %t12, label %g13, label %x13
g13:
 br label %b14
b14:
 %i14 = phi i64 [0, %g13], [%n14, %b14]
 %t15 = getelementptr half, ptr %t1, i64 %i14
 %t16 = load <8 x half>, ptr %t15, align 2
 %t17 = fpext <8 x half> %t16 to <8 x float>
 %t18 = bitcast <8 x float> %t17 to <8 x i32>
 %t19 = lshr <8 x i32> %t18, splat (i32 16)
 %t20 = and <8 x i32> %t19, splat (i32 1)
 %t21 = add <8 x i32> %t18, splat (i32 32767)
 %t22 = add <8 x i32> %t21, %t20
 %t23 = fcmp uno <8 x float> %t17, %t17
 %t24 = or <8 x i32> %t18, splat (i32 4194304)
 %t25 = select <8 x i1> %t23, <8 x i32> %t24, <8 x i32> %t22
 %t26 = and <8 x i32> %t25, splat (i32 -65536)
 %t27 = bitcast <8 x i32> %t26 to <8 x float>
 %t28 = bitcast <8 x float> %t27 to <8 x i32>
 %t29 = lshr <8 x i32> %t28, splat (i32 16)
 %t30 = trunc <8 x i32> %t29 to <8 x i16>
 %t31 = getelementptr i16, ptr %t3, i64 %i14
 store <8 x i16> %t30, ptr %t31, align 2
 %t32 = fneg <8 x float> %t17
 %t33 = fptrunc <8 x float> %t32 to <8 x half>
 %t34 = getelementptr half, ptr %t5, i64 %i14
 store <8 x half> %t33, ptr %t34, align 2
 %n14 = add nuw nsw i64 %i14, 8
 %l14 = icmp slt i64 %n14, %t11
 br i1 %l14, label %b14, label %x14
x14:
 br label %x13
x13:
 %t35 = icmp slt i64 %t11, %t7
 br i1 %t35, label %g36, label %x36
g36:
 br label %b37
b37:
 %i37 = phi i64 [%t11, %g36], [%n37, %b37]
 %t38 = sub i64 %t7, %i37
 %t39 = trunc i64 %t38 to i32
 %t40 = insertelement <8 x i32> poison, i32 %t39, i64 0
 %t41 = shufflevector <8 x i32> %t40, <8 x i32> poison, <8 x i32> zeroinitializer
 %t42 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t41
 %t43 = getelementptr half, ptr %t1, i64 %i37
 %t44 = call <8 x half> @llvm.masked.load.v8f16.p0(ptr %t43, i32 2, <8 x i1> %t42, <8 x half> zeroinitializer)
 %t45 = fpext <8 x half> %t44 to <8 x float>
 %t46 = bitcast <8 x float> %t45 to <8 x i32>
 %t47 = lshr <8 x i32> %t46, splat (i32 16)
 %t48 = and <8 x i32> %t47, splat (i32 1)
 %t49 = add <8 x i32> %t46, splat (i32 32767)
 %t50 = add <8 x i32> %t49, %t48
 %t51 = fcmp uno <8 x float> %t45, %t45
 %t52 = or <8 x i32> %t46, splat (i32 4194304)
 %t53 = select <8 x i1> %t51, <8 x i32> %t52, <8 x i32> %t50
 %t54 = and <8 x i32> %t53, splat (i32 -65536)
 %t55 = bitcast <8 x i32> %t54 to <8 x float>
 %t56 = bitcast <8 x float> %t55 to <8 x i32>
 %t57 = lshr <8 x i32> %t56, splat (i32 16)
 %t58 = trunc <8 x i32> %t57 to <8 x i16>
 %t59 = getelementptr i16, ptr %t3, i64 %i37
 call void @llvm.masked.store.v8i16.p0(<8 x i16> %t58, ptr %t59, i32 2, <8 x i1> %t42)
 %t60 = fneg <8 x float> %t45
 %t61 = fptrunc <8 x float> %t60 to <8 x half>
 %t62 = getelementptr half, ptr %t5, i64 %i37
 call void @llvm.masked.store.v8f16.p0(<8 x half> %t61, ptr %t62, i32 2, <8 x i1> %t42)
 %n37 = add nuw nsw i64 %i37, 8
 %l37 = icmp slt i64 %n37, %t7
 br i1 %l37, label %b37, label %x37
x37:
 br label %x36
x36:
 br label %x9
x9:
 ret void
}
