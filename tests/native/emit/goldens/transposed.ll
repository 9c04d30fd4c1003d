declare <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x float>)
declare void @llvm.masked.store.v4f32.p0(<4 x float>, ptr, i32, <4 x i1>)
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
 %a0 = alloca [4 x <4 x float>], align 64
 %t1 = load ptr, ptr %args, align 8
 %t2 = getelementptr i64, ptr %args, i64 1
 %t3 = load ptr, ptr %t2, align 8
 %t4 = getelementptr i64, ptr %args, i64 2
 %t5 = load i64, ptr %t4, align 8
 %t6 = getelementptr i64, ptr %args, i64 3
 %t7 = load i64, ptr %t6, align 8
 %t8 = udiv i64 %t5, 4
 %t9 = mul i64 %t8, 4
 %t10 = icmp sgt i64 %t9, 0
 %t15 = udiv i64 %t7, 4
 %t16 = mul i64 %t15, 4
 %t68 = insertelement <4 x i64> poison, i64 %t5, i64 0
 %t69 = shufflevector <4 x i64> %t68, <4 x i64> poison, <4 x i32> zeroinitializer
 br i1 %t10, label %g11, label %x11
g11:
 br label %b12
b12:
 %i12 = phi i64 [0, %g11], [%n12, %x14]
 %t13 = icmp sgt i64 %t7, 0
 %t22 = getelementptr float, ptr %t1, i64 %i12
 br i1 %t13, label %g14, label %x14
g14:
 %t17 = icmp sge i64 %t7, 4
 br i1 %t17, label %g18, label %x18
g18:
 br label %b19
b19:
 %i19 = phi i64 [0, %g18], [%n19, %x20]
 %t23 = mul i64 %i19, %t5
 %t24 = getelementptr float, ptr %t22, i64 %t23
 %t25 = load <4 x float>, ptr %t24, align 4
 %t26 = add i64 %i19, 1
 %t27 = mul i64 %t26, %t5
 %t28 = getelementptr float, ptr %t22, i64 %t27
 %t29 = load <4 x float>, ptr %t28, align 4
 %t30 = add i64 %i19, 2
 %t31 = mul i64 %t30, %t5
 %t32 = getelementptr float, ptr %t22, i64 %t31
 %t33 = load <4 x float>, ptr %t32, align 4
 %t34 = add i64 %i19, 3
 %t35 = mul i64 %t34, %t5
 %t36 = getelementptr float, ptr %t22, i64 %t35
 %t37 = load <4 x float>, ptr %t36, align 4
 %t38 = shufflevector <4 x float> %t25, <4 x float> %t33, <4 x i32> <i32 0, i32 1, i32 4, i32 5>
 %t39 = shufflevector <4 x float> %t25, <4 x float> %t33, <4 x i32> <i32 2, i32 3, i32 6, i32 7>
 %t40 = shufflevector <4 x float> %t29, <4 x float> %t37, <4 x i32> <i32 0, i32 1, i32 4, i32 5>
 %t41 = shufflevector <4 x float> %t29, <4 x float> %t37, <4 x i32> <i32 2, i32 3, i32 6, i32 7>
 %t42 = shufflevector <4 x float> %t38, <4 x float> %t40, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
 %t43 = shufflevector <4 x float> %t38, <4 x float> %t40, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
 %t44 = shufflevector <4 x float> %t39, <4 x float> %t41, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
 %t45 = shufflevector <4 x float> %t39, <4 x float> %t41, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
 %t46 = getelementptr <4 x float>, ptr %a0, i64 0
 store <4 x float> %t42, ptr %t46, align 4
 %t47 = getelementptr <4 x float>, ptr %a0, i64 1
 store <4 x float> %t43, ptr %t47, align 4
 %t48 = getelementptr <4 x float>, ptr %a0, i64 2
 store <4 x float> %t44, ptr %t48, align 4
 %t49 = getelementptr <4 x float>, ptr %a0, i64 3
 store <4 x float> %t45, ptr %t49, align 4
 %t52 = getelementptr float, ptr %t3, i64 %i19
 br label %b20
b20:
 %i20 = phi i64 [0, %b19], [%n20, %b20]
 %t21 = add i64 %i12, %i20
 %t50 = getelementptr <4 x float>, ptr %a0, i64 %i20
 %t51 = load <4 x float>, ptr %t50, align 4
 %t53 = mul i64 %t21, %t7
 %t54 = getelementptr float, ptr %t52, i64 %t53
 store <4 x float> %t51, ptr %t54, align 4
 %n20 = add nuw nsw i64 %i20, 1
 %l20 = icmp slt i64 %n20, 4
 br i1 %l20, label %b20, label %x20
x20:
 %n19 = add nuw nsw i64 %i19, 4
 %l19 = icmp slt i64 %n19, %t16
 br i1 %l19, label %b19, label %x19
x19:
 br label %x18
x18:
 %t55 = icmp slt i64 %t16, %t7
 br i1 %t55, label %g56, label %x56
g56:
 br label %b57
b57:
 %i57 = phi i64 [%t16, %g56], [%n57, %x63]
 %t58 = sub i64 %t7, %i57
 %t59 = trunc i64 %t58 to i32
 %t60 = insertelement <4 x i32> poison, i32 %t59, i64 0
 %t61 = shufflevector <4 x i32> %t60, <4 x i32> poison, <4 x i32> zeroinitializer
 %t62 = icmp slt <4 x i32> <i32 0, i32 1, i32 2, i32 3>, %t61
 %t65 = insertelement <4 x i64> poison, i64 %i57, i64 0
 %t66 = shufflevector <4 x i64> %t65, <4 x i64> poison, <4 x i32> zeroinitializer
 %t67 = add <4 x i64> %t66, <i64 0, i64 1, i64 2, i64 3>
 %t70 = mul <4 x i64> %t67, %t69
 %t76 = getelementptr float, ptr %t3, i64 %i57
 br label %b63
b63:
 %i63 = phi i64 [0, %b57], [%n63, %b63]
 %t64 = add i64 %i12, %i63
 %t71 = insertelement <4 x i64> poison, i64 %t64, i64 0
 %t72 = shufflevector <4 x i64> %t71, <4 x i64> poison, <4 x i32> zeroinitializer
 %t73 = add <4 x i64> %t70, %t72
 %t74 = getelementptr float, ptr %t1, <4 x i64> %t73
 %t75 = call <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> %t74, i32 4, <4 x i1> %t62, <4 x float> zeroinitializer)
 %t77 = mul i64 %t64, %t7
 %t78 = getelementptr float, ptr %t76, i64 %t77
 call void @llvm.masked.store.v4f32.p0(<4 x float> %t75, ptr %t78, i32 4, <4 x i1> %t62)
 %n63 = add nuw nsw i64 %i63, 1
 %l63 = icmp slt i64 %n63, 4
 br i1 %l63, label %b63, label %x63
x63:
 %n57 = add nuw nsw i64 %i57, 4
 %l57 = icmp slt i64 %n57, %t7
 br i1 %l57, label %b57, label %x57
x57:
 br label %x56
x56:
 br label %x14
x14:
 %n12 = add nuw nsw i64 %i12, 4
 %l12 = icmp slt i64 %n12, %t9
 br i1 %l12, label %b12, label %x12
x12:
 br label %x11
x11:
 %t79 = icmp slt i64 %t9, %t5
 br i1 %t79, label %g80, label %x80
g80:
 br label %b81
b81:
 %i81 = phi i64 [%t9, %g80], [%n81, %x83]
 %t82 = icmp slt i64 0, %t7
 %t86 = getelementptr float, ptr %t1, i64 %i81
 %t90 = mul i64 %i81, %t7
 %t91 = getelementptr float, ptr %t3, i64 %t90
 br i1 %t82, label %g83, label %x83
g83:
 br label %b84
b84:
 %i84 = phi i64 [0, %g83], [%n84, %b84]
 %t87 = mul i64 %i84, %t5
 %t88 = getelementptr float, ptr %t86, i64 %t87
 %t89 = load float, ptr %t88, align 4
 %t92 = getelementptr float, ptr %t91, i64 %i84
 store float %t89, ptr %t92, align 4
 %n84 = add nuw nsw i64 %i84, 1
 %l84 = icmp slt i64 %n84, %t7
 br i1 %l84, label %b84, label %x84
x84:
 br label %x83
x83:
 %n81 = add nuw nsw i64 %i81, 1
 %l81 = icmp slt i64 %n81, %t5
 br i1 %l81, label %b81, label %x81
x81:
 br label %x80
x80:
 ret void
}
