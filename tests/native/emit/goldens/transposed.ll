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
 %t18 = udiv i64 %t7, 4
 %t19 = mul i64 %t18, 4
 %t74 = insertelement <4 x i64> poison, i64 %t5, i64 0
 %t75 = shufflevector <4 x i64> %t74, <4 x i64> poison, <4 x i32> zeroinitializer
 br i1 %t10, label %g11, label %x11
g11:
 %t12 = sub i64 %t5, 4
 br label %b13
b13:
 %i13 = phi i64 [0, %g11], [%n13, %x17]
 %t14 = icmp slt i64 %i13, %t12
 %t15 = select i1 %t14, i64 %i13, i64 %t12
 %t16 = icmp sgt i64 %t7, 0
 %t28 = getelementptr float, ptr %t1, i64 %t15
 br i1 %t16, label %g17, label %x17
g17:
 %t20 = icmp sge i64 %t7, 4
 br i1 %t20, label %g21, label %x21
g21:
 %t22 = sub i64 %t7, 4
 br label %b23
b23:
 %i23 = phi i64 [0, %g21], [%n23, %x26]
 %t24 = icmp slt i64 %i23, %t22
 %t25 = select i1 %t24, i64 %i23, i64 %t22
 %t29 = mul i64 %t25, %t5
 %t30 = getelementptr float, ptr %t28, i64 %t29
 %t31 = load <4 x float>, ptr %t30, align 4
 %t32 = add i64 %t25, 1
 %t33 = mul i64 %t32, %t5
 %t34 = getelementptr float, ptr %t28, i64 %t33
 %t35 = load <4 x float>, ptr %t34, align 4
 %t36 = add i64 %t25, 2
 %t37 = mul i64 %t36, %t5
 %t38 = getelementptr float, ptr %t28, i64 %t37
 %t39 = load <4 x float>, ptr %t38, align 4
 %t40 = add i64 %t25, 3
 %t41 = mul i64 %t40, %t5
 %t42 = getelementptr float, ptr %t28, i64 %t41
 %t43 = load <4 x float>, ptr %t42, align 4
 %t44 = shufflevector <4 x float> %t31, <4 x float> %t39, <4 x i32> <i32 0, i32 1, i32 4, i32 5>
 %t45 = shufflevector <4 x float> %t31, <4 x float> %t39, <4 x i32> <i32 2, i32 3, i32 6, i32 7>
 %t46 = shufflevector <4 x float> %t35, <4 x float> %t43, <4 x i32> <i32 0, i32 1, i32 4, i32 5>
 %t47 = shufflevector <4 x float> %t35, <4 x float> %t43, <4 x i32> <i32 2, i32 3, i32 6, i32 7>
 %t48 = shufflevector <4 x float> %t44, <4 x float> %t46, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
 %t49 = shufflevector <4 x float> %t44, <4 x float> %t46, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
 %t50 = shufflevector <4 x float> %t45, <4 x float> %t47, <4 x i32> <i32 0, i32 4, i32 2, i32 6>
 %t51 = shufflevector <4 x float> %t45, <4 x float> %t47, <4 x i32> <i32 1, i32 5, i32 3, i32 7>
 %t52 = getelementptr <4 x float>, ptr %a0, i64 0
 store <4 x float> %t48, ptr %t52, align 4
 %t53 = getelementptr <4 x float>, ptr %a0, i64 1
 store <4 x float> %t49, ptr %t53, align 4
 %t54 = getelementptr <4 x float>, ptr %a0, i64 2
 store <4 x float> %t50, ptr %t54, align 4
 %t55 = getelementptr <4 x float>, ptr %a0, i64 3
 store <4 x float> %t51, ptr %t55, align 4
 %t58 = getelementptr float, ptr %t3, i64 %t25
 br label %b26
b26:
 %i26 = phi i64 [0, %b23], [%n26, %b26]
 %t27 = add i64 %t15, %i26
 %t56 = getelementptr <4 x float>, ptr %a0, i64 %i26
 %t57 = load <4 x float>, ptr %t56, align 4
 %t59 = mul i64 %t27, %t7
 %t60 = getelementptr float, ptr %t58, i64 %t59
 store <4 x float> %t57, ptr %t60, align 4
 %n26 = add nuw nsw i64 %i26, 1
 %l26 = icmp slt i64 %n26, 4
 br i1 %l26, label %b26, label %x26
x26:
 %n23 = add nuw nsw i64 %i23, 4
 %l23 = icmp slt i64 %n23, %t7
 br i1 %l23, label %b23, label %x23
x23:
 br label %x21
x21:
 %t61 = icmp slt i64 %t7, 4
 br i1 %t61, label %g62, label %x62
g62:
 br label %b63
b63:
 %i63 = phi i64 [0, %g62], [%n63, %x69]
 %t64 = sub i64 %t7, %i63
 %t65 = trunc i64 %t64 to i32
 %t66 = insertelement <4 x i32> poison, i32 %t65, i64 0
 %t67 = shufflevector <4 x i32> %t66, <4 x i32> poison, <4 x i32> zeroinitializer
 %t68 = icmp slt <4 x i32> <i32 0, i32 1, i32 2, i32 3>, %t67
 %t71 = insertelement <4 x i64> poison, i64 %i63, i64 0
 %t72 = shufflevector <4 x i64> %t71, <4 x i64> poison, <4 x i32> zeroinitializer
 %t73 = add <4 x i64> %t72, <i64 0, i64 1, i64 2, i64 3>
 %t76 = mul <4 x i64> %t73, %t75
 %t82 = getelementptr float, ptr %t3, i64 %i63
 br label %b69
b69:
 %i69 = phi i64 [0, %b63], [%n69, %b69]
 %t70 = add i64 %t15, %i69
 %t77 = insertelement <4 x i64> poison, i64 %t70, i64 0
 %t78 = shufflevector <4 x i64> %t77, <4 x i64> poison, <4 x i32> zeroinitializer
 %t79 = add <4 x i64> %t76, %t78
 %t80 = getelementptr float, ptr %t1, <4 x i64> %t79
 %t81 = call <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> %t80, i32 4, <4 x i1> %t68, <4 x float> zeroinitializer)
 %t83 = mul i64 %t70, %t7
 %t84 = getelementptr float, ptr %t82, i64 %t83
 call void @llvm.masked.store.v4f32.p0(<4 x float> %t81, ptr %t84, i32 4, <4 x i1> %t68)
 %n69 = add nuw nsw i64 %i69, 1
 %l69 = icmp slt i64 %n69, 4
 br i1 %l69, label %b69, label %x69
x69:
 %n63 = add nuw nsw i64 %i63, 4
 %l63 = icmp slt i64 %n63, %t7
 br i1 %l63, label %b63, label %x63
x63:
 br label %x62
x62:
 br label %x17
x17:
 %n13 = add nuw nsw i64 %i13, 4
 %l13 = icmp slt i64 %n13, %t5
 br i1 %l13, label %b13, label %x13
x13:
 br label %x11
x11:
 %t85 = icmp slt i64 %t9, %t5
 %t86 = icmp eq i64 %t9, 0
 %t87 = and i1 %t85, %t86
 br i1 %t87, label %g88, label %x88
g88:
 br label %b89
b89:
 %i89 = phi i64 [%t9, %g88], [%n89, %x91]
 %t90 = icmp slt i64 0, %t7
 %t94 = getelementptr float, ptr %t1, i64 %i89
 %t98 = mul i64 %i89, %t7
 %t99 = getelementptr float, ptr %t3, i64 %t98
 br i1 %t90, label %g91, label %x91
g91:
 br label %b92
b92:
 %i92 = phi i64 [0, %g91], [%n92, %b92]
 %t95 = mul i64 %i92, %t5
 %t96 = getelementptr float, ptr %t94, i64 %t95
 %t97 = load float, ptr %t96, align 4
 %t100 = getelementptr float, ptr %t99, i64 %i92
 store float %t97, ptr %t100, align 4
 %n92 = add nuw nsw i64 %i92, 1
 %l92 = icmp slt i64 %n92, %t7
 br i1 %l92, label %b92, label %x92
x92:
 br label %x91
x91:
 %n89 = add nuw nsw i64 %i89, 1
 %l89 = icmp slt i64 %n89, %t5
 br i1 %l89, label %b89, label %x89
x89:
 br label %x88
x88:
 ret void
}
