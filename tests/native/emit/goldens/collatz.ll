declare <8 x i64> @llvm.masked.load.v8i64.p0(ptr, i32, <8 x i1>, <8 x i64>)
declare i1 @llvm.vector.reduce.or.v8i1(<8 x i1>)
declare i32 @calque_poll(ptr) cold
declare void @llvm.masked.store.v8i64.p0(<8 x i64>, ptr, i32, <8 x i1>)
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
 %t1 = load ptr, ptr %args, align 8
 %t2 = getelementptr i64, ptr %args, i64 1
 %t3 = load ptr, ptr %t2, align 8
 %t4 = getelementptr i64, ptr %args, i64 2
 %t5 = load i64, ptr %t4, align 8
 %t6 = icmp sgt i64 %t5, 0
 %t8 = udiv i64 %t5, 8
 %t9 = mul i64 %t8, 8
 br i1 %t6, label %g7, label %x7
g7:
 %t10 = icmp sge i64 %t5, 8
 br i1 %t10, label %g11, label %x11
g11:
 br label %b12
b12:
 %i12 = phi i64 [0, %g11], [%n12, %x13]
 %t14 = getelementptr i64, ptr %t1, i64 %i12
 %t15 = load <8 x i64>, ptr %t14, align 8
 br label %h13
h13:
 %a13.n = phi i64 [0, %b12], [%a13.m, %on13]
 %c13_0 = phi <8 x i64> [%t15, %b12], [%t25, %on13]
 %c13_1 = phi <8 x i64> [splat (i64 0), %b12], [%t26, %on13]
 %t16 = icmp sgt <8 x i64> %c13_0, splat (i64 1)
 %t17 = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %t16)
 br i1 %t17, label %b13, label %x13
b13:
 %t18 = and <8 x i64> %c13_0, splat (i64 1)
 %t19 = icmp ne <8 x i64> %t18, splat (i64 0)
 %t20 = mul <8 x i64> %c13_0, splat (i64 3)
 %t21 = add <8 x i64> %t20, splat (i64 1)
 %t22 = ashr <8 x i64> %c13_0, splat (i64 1)
 %t23 = select <8 x i1> %t19, <8 x i64> %t21, <8 x i64> %t22
 %t24 = add <8 x i64> %c13_1, splat (i64 1)
 %t25 = select <8 x i1> %t16, <8 x i64> %t23, <8 x i64> %c13_0
 %t26 = select <8 x i1> %t16, <8 x i64> %t24, <8 x i64> %c13_1
 %a13.m = add i64 %a13.n, 1
 %a13.r = and i64 %a13.m, 65535
 %a13.z = icmp eq i64 %a13.r, 0
 br i1 %a13.z, label %ask13, label %on13, !prof !{!"branch_weights", i32 1, i32 100000}
ask13:
 %a13.p = getelementptr i64, ptr %args, i64 -1
 %a13.run = load ptr, ptr %a13.p, align 8
 %a13.s = call i32 @calque_poll(ptr %a13.run)
 %a13.stop = icmp ne i32 %a13.s, 0
 br i1 %a13.stop, label %stop13, label %on13, !prof !{!"branch_weights", i32 1, i32 100000}
stop13:
 ret void
on13:
 br label %h13
x13:
 %t27 = getelementptr i64, ptr %t3, i64 %i12
 store <8 x i64> %c13_1, ptr %t27, align 8
 %n12 = add nuw nsw i64 %i12, 8
 %l12 = icmp slt i64 %n12, %t9
 br i1 %l12, label %b12, label %x12
x12:
 br label %x11
x11:
 %t28 = icmp slt i64 %t9, %t5
 br i1 %t28, label %g29, label %x29
g29:
 br label %b30
b30:
 %i30 = phi i64 [%t9, %g29], [%n30, %x36]
 %t31 = sub i64 %t5, %i30
 %t32 = trunc i64 %t31 to i32
 %t33 = insertelement <8 x i32> poison, i32 %t32, i64 0
 %t34 = shufflevector <8 x i32> %t33, <8 x i32> poison, <8 x i32> zeroinitializer
 %t35 = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t34
 %t37 = getelementptr i64, ptr %t1, i64 %i30
 %t38 = call <8 x i64> @llvm.masked.load.v8i64.p0(ptr %t37, i32 8, <8 x i1> %t35, <8 x i64> zeroinitializer)
 br label %h36
h36:
 %a36.n = phi i64 [0, %b30], [%a36.m, %on36]
 %c36_0 = phi <8 x i64> [%t38, %b30], [%t49, %on36]
 %c36_1 = phi <8 x i64> [splat (i64 0), %b30], [%t50, %on36]
 %t39 = icmp sgt <8 x i64> %c36_0, splat (i64 1)
 %t40 = and <8 x i1> %t39, %t35
 %t41 = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %t40)
 br i1 %t41, label %b36, label %x36
b36:
 %t42 = and <8 x i64> %c36_0, splat (i64 1)
 %t43 = icmp ne <8 x i64> %t42, splat (i64 0)
 %t44 = mul <8 x i64> %c36_0, splat (i64 3)
 %t45 = add <8 x i64> %t44, splat (i64 1)
 %t46 = ashr <8 x i64> %c36_0, splat (i64 1)
 %t47 = select <8 x i1> %t43, <8 x i64> %t45, <8 x i64> %t46
 %t48 = add <8 x i64> %c36_1, splat (i64 1)
 %t49 = select <8 x i1> %t40, <8 x i64> %t47, <8 x i64> %c36_0
 %t50 = select <8 x i1> %t40, <8 x i64> %t48, <8 x i64> %c36_1
 %a36.m = add i64 %a36.n, 1
 %a36.r = and i64 %a36.m, 65535
 %a36.z = icmp eq i64 %a36.r, 0
 br i1 %a36.z, label %ask36, label %on36, !prof !{!"branch_weights", i32 1, i32 100000}
ask36:
 %a36.p = getelementptr i64, ptr %args, i64 -1
 %a36.run = load ptr, ptr %a36.p, align 8
 %a36.s = call i32 @calque_poll(ptr %a36.run)
 %a36.stop = icmp ne i32 %a36.s, 0
 br i1 %a36.stop, label %stop36, label %on36, !prof !{!"branch_weights", i32 1, i32 100000}
stop36:
 ret void
on36:
 br label %h36
x36:
 %t51 = getelementptr i64, ptr %t3, i64 %i30
 call void @llvm.masked.store.v8i64.p0(<8 x i64> %c36_1, ptr %t51, i32 8, <8 x i1> %t35)
 %n30 = add nuw nsw i64 %i30, 8
 %l30 = icmp slt i64 %n30, %t5
 br i1 %l30, label %b30, label %x30
x30:
 br label %x29
x29:
 br label %x7
x7:
 ret void
}
