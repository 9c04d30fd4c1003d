declare float @llvm.sqrt.f32(float)
declare i32 @calque_poll(ptr) cold
define void @kernel(ptr %args, i64 %begin, i64 %end) {
entry:
 %t1 = load ptr, ptr %args, align 8
 %t2 = getelementptr i64, ptr %args, i64 1
 %t3 = load ptr, ptr %t2, align 8
 %t4 = getelementptr i64, ptr %args, i64 2
 %t5 = load i64, ptr %t4, align 8
 br label %h6
h6:
 %i6 = phi i64 [0, %entry], [%n6, %on6]
 %c6_0 = phi float [0x0000000000000000, %entry], [%t15, %on6]
 %t7 = icmp slt i64 %i6, %t5
 br i1 %t7, label %b6, label %x6
b6:
 %t8 = getelementptr float, ptr %t1, i64 %i6
 %t9 = load float, ptr %t8, align 4
 %t10 = fcmp ogt float %t9, %c6_0
 %t11 = fadd contract float %c6_0, %t9
 br i1 %t10, label %r12, label %j12
r12:
 %t13 = call float @llvm.sqrt.f32(float %t9)
 %t14 = select i1 %t10, float %t13, float %t11
 br label %j12
j12:
 %t15 = phi float [%t11, %b6], [%t14, %r12]
 %n6 = add nuw nsw i64 %i6, 1
 %a6.r = and i64 %n6, 65535
 %a6.z = icmp eq i64 %a6.r, 0
 br i1 %a6.z, label %ask6, label %on6, !prof !{!"branch_weights", i32 1, i32 100000}
ask6:
 %a6.p = getelementptr i64, ptr %args, i64 -1
 %a6.run = load ptr, ptr %a6.p, align 8
 %a6.s = call i32 @calque_poll(ptr %a6.run)
 %a6.stop = icmp ne i32 %a6.s, 0
 br i1 %a6.stop, label %stop6, label %on6, !prof !{!"branch_weights", i32 1, i32 100000}
stop6:
 ret void
on6:
 br label %h6
x6:
 store float %c6_0, ptr %t3, align 4
 ret void
}
