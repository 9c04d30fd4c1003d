declare <64 x float> @llvm.masked.load.v64f32.p0(ptr, i32, <64 x i1>, <64 x float>)
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
 %t1 = load ptr, ptr %args, align 8
 %t2 = getelementptr i64, ptr %args, i64 1
 %t3 = load ptr, ptr %t2, align 8
 %t4 = getelementptr i64, ptr %args, i64 2
 %t5 = load i64, ptr %t4, align 8
 %t6 = icmp sgt i64 %t5, 0
 %t8 = udiv i64 %t5, 64
 %t9 = mul i64 %t8, 64
 br i1 %t6, label %g7, label %x7
g7:
 %t10 = icmp sge i64 %t5, 64
 br i1 %t10, label %g11, label %x11
g11:
 br label %b12
b12:
 %i12 = phi i64 [0, %g11], [%n12, %b12]
 %c12_0 = phi <16 x float> [splat (float 0xFFF0000000000000), %g11], [%t33, %b12]
 %c12_1 = phi <16 x i64> [splat (i64 -1), %g11], [%t34, %b12]
 %t13 = getelementptr float, ptr %t1, i64 %i12
 %t14 = load <64 x float>, ptr %t13, align 4
 %t15 = insertelement <64 x i64> poison, i64 %i12, i64 0
 %t16 = shufflevector <64 x i64> %t15, <64 x i64> poison, <64 x i32> zeroinitializer
 %t17 = add <64 x i64> %t16, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15, i64 16, i64 17, i64 18, i64 19, i64 20, i64 21, i64 22, i64 23, i64 24, i64 25, i64 26, i64 27, i64 28, i64 29, i64 30, i64 31, i64 32, i64 33, i64 34, i64 35, i64 36, i64 37, i64 38, i64 39, i64 40, i64 41, i64 42, i64 43, i64 44, i64 45, i64 46, i64 47, i64 48, i64 49, i64 50, i64 51, i64 52, i64 53, i64 54, i64 55, i64 56, i64 57, i64 58, i64 59, i64 60, i64 61, i64 62, i64 63>
 %t18 = shufflevector <64 x float> %t14, <64 x float> poison, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
 %t19 = shufflevector <64 x i64> %t17, <64 x i64> poison, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
 %t20 = shufflevector <64 x float> %t14, <64 x float> poison, <32 x i32> <i32 32, i32 33, i32 34, i32 35, i32 36, i32 37, i32 38, i32 39, i32 40, i32 41, i32 42, i32 43, i32 44, i32 45, i32 46, i32 47, i32 48, i32 49, i32 50, i32 51, i32 52, i32 53, i32 54, i32 55, i32 56, i32 57, i32 58, i32 59, i32 60, i32 61, i32 62, i32 63>
 %t21 = shufflevector <64 x i64> %t17, <64 x i64> poison, <32 x i32> <i32 32, i32 33, i32 34, i32 35, i32 36, i32 37, i32 38, i32 39, i32 40, i32 41, i32 42, i32 43, i32 44, i32 45, i32 46, i32 47, i32 48, i32 49, i32 50, i32 51, i32 52, i32 53, i32 54, i32 55, i32 56, i32 57, i32 58, i32 59, i32 60, i32 61, i32 62, i32 63>
 %t22 = fcmp oge <32 x float> %t18, %t20
 %t23 = select <32 x i1> %t22, <32 x float> %t18, <32 x float> %t20
 %t24 = select <32 x i1> %t22, <32 x i64> %t19, <32 x i64> %t21
 %t25 = shufflevector <32 x float> %t23, <32 x float> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
 %t26 = shufflevector <32 x i64> %t24, <32 x i64> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
 %t27 = shufflevector <32 x float> %t23, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
 %t28 = shufflevector <32 x i64> %t24, <32 x i64> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
 %t29 = fcmp oge <16 x float> %t25, %t27
 %t30 = select <16 x i1> %t29, <16 x float> %t25, <16 x float> %t27
 %t31 = select <16 x i1> %t29, <16 x i64> %t26, <16 x i64> %t28
 %t32 = fcmp oge <16 x float> %c12_0, %t30
 %t33 = select <16 x i1> %t32, <16 x float> %c12_0, <16 x float> %t30
 %t34 = select <16 x i1> %t32, <16 x i64> %c12_1, <16 x i64> %t31
 %n12 = add nuw nsw i64 %i12, 64
 %l12 = icmp slt i64 %n12, %t9
 br i1 %l12, label %b12, label %x12
x12:
 br label %x11
x11:
 %t35 = phi <16 x float> [splat (float 0xFFF0000000000000), %g7], [%t33, %x12]
 %t36 = phi <16 x i64> [splat (i64 -1), %g7], [%t34, %x12]
 %t37 = icmp slt i64 %t9, %t5
 br i1 %t37, label %g38, label %x38
g38:
 %t39 = sub i64 %t5, %t9
 %t40 = trunc i64 %t39 to i32
 %t41 = insertelement <64 x i32> poison, i32 %t40, i64 0
 %t42 = shufflevector <64 x i32> %t41, <64 x i32> poison, <64 x i32> zeroinitializer
 %t43 = icmp slt <64 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 32, i32 33, i32 34, i32 35, i32 36, i32 37, i32 38, i32 39, i32 40, i32 41, i32 42, i32 43, i32 44, i32 45, i32 46, i32 47, i32 48, i32 49, i32 50, i32 51, i32 52, i32 53, i32 54, i32 55, i32 56, i32 57, i32 58, i32 59, i32 60, i32 61, i32 62, i32 63>, %t42
 %t44 = getelementptr float, ptr %t1, i64 %t9
 %t45 = call <64 x float> @llvm.masked.load.v64f32.p0(ptr %t44, i32 4, <64 x i1> %t43, <64 x float> zeroinitializer)
 %t46 = insertelement <64 x i64> poison, i64 %t9, i64 0
 %t47 = shufflevector <64 x i64> %t46, <64 x i64> poison, <64 x i32> zeroinitializer
 %t48 = add <64 x i64> %t47, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15, i64 16, i64 17, i64 18, i64 19, i64 20, i64 21, i64 22, i64 23, i64 24, i64 25, i64 26, i64 27, i64 28, i64 29, i64 30, i64 31, i64 32, i64 33, i64 34, i64 35, i64 36, i64 37, i64 38, i64 39, i64 40, i64 41, i64 42, i64 43, i64 44, i64 45, i64 46, i64 47, i64 48, i64 49, i64 50, i64 51, i64 52, i64 53, i64 54, i64 55, i64 56, i64 57, i64 58, i64 59, i64 60, i64 61, i64 62, i64 63>
 %t49 = select <64 x i1> %t43, <64 x float> %t45, <64 x float> splat (float 0xFFF0000000000000)
 %t50 = select <64 x i1> %t43, <64 x i64> %t48, <64 x i64> splat (i64 -1)
 %t51 = shufflevector <64 x float> %t49, <64 x float> poison, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
 %t52 = shufflevector <64 x i64> %t50, <64 x i64> poison, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
 %t53 = shufflevector <64 x float> %t49, <64 x float> poison, <32 x i32> <i32 32, i32 33, i32 34, i32 35, i32 36, i32 37, i32 38, i32 39, i32 40, i32 41, i32 42, i32 43, i32 44, i32 45, i32 46, i32 47, i32 48, i32 49, i32 50, i32 51, i32 52, i32 53, i32 54, i32 55, i32 56, i32 57, i32 58, i32 59, i32 60, i32 61, i32 62, i32 63>
 %t54 = shufflevector <64 x i64> %t50, <64 x i64> poison, <32 x i32> <i32 32, i32 33, i32 34, i32 35, i32 36, i32 37, i32 38, i32 39, i32 40, i32 41, i32 42, i32 43, i32 44, i32 45, i32 46, i32 47, i32 48, i32 49, i32 50, i32 51, i32 52, i32 53, i32 54, i32 55, i32 56, i32 57, i32 58, i32 59, i32 60, i32 61, i32 62, i32 63>
 %t55 = fcmp oge <32 x float> %t51, %t53
 %t56 = select <32 x i1> %t55, <32 x float> %t51, <32 x float> %t53
 %t57 = select <32 x i1> %t55, <32 x i64> %t52, <32 x i64> %t54
 %t58 = shufflevector <32 x float> %t56, <32 x float> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
 %t59 = shufflevector <32 x i64> %t57, <32 x i64> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
 %t60 = shufflevector <32 x float> %t56, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
 %t61 = shufflevector <32 x i64> %t57, <32 x i64> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
 %t62 = fcmp oge <16 x float> %t58, %t60
 %t63 = select <16 x i1> %t62, <16 x float> %t58, <16 x float> %t60
 %t64 = select <16 x i1> %t62, <16 x i64> %t59, <16 x i64> %t61
 %t65 = fcmp oge <16 x float> %t35, %t63
 %t66 = select <16 x i1> %t65, <16 x float> %t35, <16 x float> %t63
 %t67 = select <16 x i1> %t65, <16 x i64> %t36, <16 x i64> %t64
 br label %x38
x38:
 %t68 = phi <16 x float> [%t35, %x11], [%t66, %g38]
 %t69 = phi <16 x i64> [%t36, %x11], [%t67, %g38]
 br label %x7
x7:
 %t70 = phi <16 x float> [splat (float 0xFFF0000000000000), %entry], [%t68, %x38]
 %t71 = phi <16 x i64> [splat (i64 -1), %entry], [%t69, %x38]
 %t72 = shufflevector <16 x float> %t70, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
 %t73 = shufflevector <16 x i64> %t71, <16 x i64> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
 %t74 = shufflevector <16 x float> %t70, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
 %t75 = shufflevector <16 x i64> %t71, <16 x i64> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
 %t76 = fcmp oge <8 x float> %t72, %t74
 %t77 = select <8 x i1> %t76, <8 x float> %t72, <8 x float> %t74
 %t78 = select <8 x i1> %t76, <8 x i64> %t73, <8 x i64> %t75
 %t79 = shufflevector <8 x float> %t77, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
 %t80 = shufflevector <8 x i64> %t78, <8 x i64> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
 %t81 = shufflevector <8 x float> %t77, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
 %t82 = shufflevector <8 x i64> %t78, <8 x i64> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
 %t83 = fcmp oge <4 x float> %t79, %t81
 %t84 = select <4 x i1> %t83, <4 x float> %t79, <4 x float> %t81
 %t85 = select <4 x i1> %t83, <4 x i64> %t80, <4 x i64> %t82
 %t86 = shufflevector <4 x float> %t84, <4 x float> poison, <2 x i32> <i32 0, i32 1>
 %t87 = shufflevector <4 x i64> %t85, <4 x i64> poison, <2 x i32> <i32 0, i32 1>
 %t88 = shufflevector <4 x float> %t84, <4 x float> poison, <2 x i32> <i32 2, i32 3>
 %t89 = shufflevector <4 x i64> %t85, <4 x i64> poison, <2 x i32> <i32 2, i32 3>
 %t90 = fcmp oge <2 x float> %t86, %t88
 %t91 = select <2 x i1> %t90, <2 x float> %t86, <2 x float> %t88
 %t92 = select <2 x i1> %t90, <2 x i64> %t87, <2 x i64> %t89
 %t93 = shufflevector <2 x float> %t91, <2 x float> poison, <1 x i32> <i32 0>
 %t94 = shufflevector <2 x i64> %t92, <2 x i64> poison, <1 x i32> <i32 0>
 %t95 = shufflevector <2 x float> %t91, <2 x float> poison, <1 x i32> <i32 1>
 %t96 = shufflevector <2 x i64> %t92, <2 x i64> poison, <1 x i32> <i32 1>
 %t97 = fcmp oge <1 x float> %t93, %t95
 %t98 = select <1 x i1> %t97, <1 x float> %t93, <1 x float> %t95
 %t99 = select <1 x i1> %t97, <1 x i64> %t94, <1 x i64> %t96
 %t100 = extractelement <1 x float> %t98, i64 0
 %t101 = extractelement <1 x i64> %t99, i64 0
 store i64 %t101, ptr %t3, align 8
 ret void
}
