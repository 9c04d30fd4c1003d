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
 %t17 = bitcast <8 x half> %t16 to <8 x i16>
 %t18 = zext <8 x i16> %t17 to <8 x i32>
 %t19 = and <8 x i32> %t18, splat (i32 32767)
 %t20 = shl <8 x i32> %t19, splat (i32 13)
 %t21 = and <8 x i32> %t20, splat (i32 260046848)
 %t22 = add <8 x i32> %t20, splat (i32 939524096)
 %t23 = add <8 x i32> %t22, splat (i32 939524096)
 %t24 = add <8 x i32> %t22, splat (i32 8388608)
 %t25 = bitcast <8 x i32> %t24 to <8 x float>
 %t26 = fsub <8 x float> %t25, splat (float 0x3F10000000000000)
 %t27 = icmp eq <8 x i32> %t21, splat (i32 0)
 %t28 = bitcast <8 x float> %t26 to <8 x i32>
 %t29 = select <8 x i1> %t27, <8 x i32> %t28, <8 x i32> %t22
 %t30 = icmp eq <8 x i32> %t21, splat (i32 260046848)
 %t31 = select <8 x i1> %t30, <8 x i32> %t23, <8 x i32> %t29
 %t32 = and <8 x i32> %t18, splat (i32 32768)
 %t33 = shl <8 x i32> %t32, splat (i32 16)
 %t34 = or <8 x i32> %t31, %t33
 %t35 = bitcast <8 x i32> %t34 to <8 x float>
 %t36 = bitcast <8 x float> %t35 to <8 x i32>
 %t37 = lshr <8 x i32> %t36, splat (i32 16)
 %t38 = and <8 x i32> %t37, splat (i32 1)
 %t39 = add <8 x i32> %t36, splat (i32 32767)
 %t40 = add <8 x i32> %t39, %t38
 %t41 = fcmp uno <8 x float> %t35, %t35
 %t42 = or <8 x i32> %t36, splat (i32 4194304)
 %t43 = select <8 x i1> %t41, <8 x i32> %t42, <8 x i32> %t40
 %t44 = and <8 x i32> %t43, splat (i32 -65536)
 %t45 = bitcast <8 x i32> %t44 to <8 x float>
 %t46 = bitcast <8 x float> %t45 to <8 x i32>
 %t47 = lshr <8 x i32> %t46, splat (i32 16)
 %t48 = trunc <8 x i32> %t47 to <8 x i16>
 %t49 = getelementptr i16, ptr %t3, i64 %i14
 store <8 x i16> %t48, ptr %t49, align 2
 %t50 = fneg <8 x float> %t35
 %t51 = bitcast <8 x float> %t50 to <8 x i32>
 %t52 = and <8 x i32> %t51, splat (i32 2147483647)
 %t53 = icmp ugt <8 x i32> %t52, splat (i32 2139095040)
 %t54 = select <8 x i1> %t53, <8 x i32> splat (i32 32256), <8 x i32> splat (i32 31744)
 %t55 = lshr <8 x i32> %t52, splat (i32 13)
 %t56 = and <8 x i32> %t55, splat (i32 1)
 %t57 = add <8 x i32> %t52, splat (i32 -939520001)
 %t58 = add <8 x i32> %t57, %t56
 %t59 = lshr <8 x i32> %t58, splat (i32 13)
 %t60 = bitcast <8 x i32> %t52 to <8 x float>
 %t61 = fadd <8 x float> %t60, splat (float 0x3FE0000000000000)
 %t62 = bitcast <8 x float> %t61 to <8 x i32>
 %t63 = sub <8 x i32> %t62, splat (i32 1056964608)
 %t64 = icmp ult <8 x i32> %t52, splat (i32 947912704)
 %t65 = select <8 x i1> %t64, <8 x i32> %t63, <8 x i32> %t59
 %t66 = icmp uge <8 x i32> %t52, splat (i32 1199570944)
 %t67 = select <8 x i1> %t66, <8 x i32> %t54, <8 x i32> %t65
 %t68 = lshr <8 x i32> %t51, splat (i32 16)
 %t69 = and <8 x i32> %t68, splat (i32 32768)
 %t70 = or <8 x i32> %t67, %t69
 %t71 = trunc <8 x i32> %t70 to <8 x i16>
 %t72 = bitcast <8 x i16> %t71 to <8 x half>
 %t73 = getelementptr half, ptr %t5, i64 %i14
 store <8 x half> %t72, ptr %t73, align 2
 %n14 = add nuw nsw i64 %i14, 8
 %l14 = icmp slt i64 %n14, %t11
 br i1 %l14, label %b14, label %x14
x14:
 br label %x13
x13:
 %t74 = icmp slt i64 %t11, %t7
 br i1 %t74, label %g75, label %x75
g75:
 br label %b76
b76:
 %i76 = phi i64 [%t11, %g75], [%n76, %b76]
 %t78 = getelementptr half, ptr %t1, i64 %i76
 %t79 = load half, ptr %t78, align 2
 %t80 = bitcast half %t79 to i16
 %t81 = zext i16 %t80 to i32
 %t82 = and i32 %t81, 32767
 %t83 = shl i32 %t82, 13
 %t84 = and i32 %t83, 260046848
 %t85 = add i32 %t83, 939524096
 %t86 = add i32 %t85, 939524096
 %t87 = add i32 %t85, 8388608
 %t88 = bitcast i32 %t87 to float
 %t89 = fsub float %t88, 0x3F10000000000000
 %t90 = icmp eq i32 %t84, 0
 %t91 = bitcast float %t89 to i32
 %t92 = select i1 %t90, i32 %t91, i32 %t85
 %t93 = icmp eq i32 %t84, 260046848
 %t94 = select i1 %t93, i32 %t86, i32 %t92
 %t95 = and i32 %t81, 32768
 %t96 = shl i32 %t95, 16
 %t97 = or i32 %t94, %t96
 %t98 = bitcast i32 %t97 to float
 %t99 = bitcast float %t98 to i32
 %t100 = lshr i32 %t99, 16
 %t101 = and i32 %t100, 1
 %t102 = add i32 %t99, 32767
 %t103 = add i32 %t102, %t101
 %t104 = fcmp uno float %t98, %t98
 %t105 = or i32 %t99, 4194304
 %t106 = select i1 %t104, i32 %t105, i32 %t103
 %t107 = and i32 %t106, -65536
 %t108 = bitcast i32 %t107 to float
 %t109 = bitcast float %t108 to i32
 %t110 = lshr i32 %t109, 16
 %t111 = trunc i32 %t110 to i16
 %t112 = getelementptr i16, ptr %t3, i64 %i76
 store i16 %t111, ptr %t112, align 2
 %t114 = fneg float %t98
 %t115 = bitcast float %t114 to i32
 %t116 = and i32 %t115, 2147483647
 %t117 = icmp ugt i32 %t116, 2139095040
 %t118 = select i1 %t117, i32 32256, i32 31744
 %t119 = lshr i32 %t116, 13
 %t120 = and i32 %t119, 1
 %t121 = add i32 %t116, -939520001
 %t122 = add i32 %t121, %t120
 %t123 = lshr i32 %t122, 13
 %t124 = bitcast i32 %t116 to float
 %t125 = fadd float %t124, 0x3FE0000000000000
 %t126 = bitcast float %t125 to i32
 %t127 = sub i32 %t126, 1056964608
 %t128 = icmp ult i32 %t116, 947912704
 %t129 = select i1 %t128, i32 %t127, i32 %t123
 %t130 = icmp uge i32 %t116, 1199570944
 %t131 = select i1 %t130, i32 %t118, i32 %t129
 %t132 = lshr i32 %t115, 16
 %t133 = and i32 %t132, 32768
 %t134 = or i32 %t131, %t133
 %t135 = trunc i32 %t134 to i16
 %t136 = bitcast i16 %t135 to half
 %t137 = getelementptr half, ptr %t5, i64 %i76
 store half %t136, ptr %t137, align 2
 %n76 = add nuw nsw i64 %i76, 1
 %l76 = icmp slt i64 %n76, %t7
 br i1 %l76, label %b76, label %x76
x76:
 br label %x75
x75:
 br label %x9
x9:
 ret void
}
