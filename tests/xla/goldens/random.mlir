module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xui32>) -> (tensor<3xui32> {jax.result_info = "result"}) {
    %0 = stablehlo.slice %arg0 [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %1 = stablehlo.reshape %0 : (tensor<1xui32>) -> tensor<ui32>
    %2 = stablehlo.slice %arg0 [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %3 = stablehlo.reshape %2 : (tensor<1xui32>) -> tensor<ui32>
    %4 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %5 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %6 = stablehlo.iota dim = 0 : tensor<3xui64>
    %c = stablehlo.constant dense<32> : tensor<ui64>
    %7 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui64>) -> tensor<3xui64>
    %8 = stablehlo.shift_right_logical %6, %7 : tensor<3xui64>
    %9 = stablehlo.convert %8 : (tensor<3xui64>) -> tensor<3xui32>
    %10 = stablehlo.convert %6 : (tensor<3xui64>) -> tensor<3xui32>
    %11:2 = call @threefry2x32(%4, %5, %9, %10) : (tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>)
    %12 = stablehlo.xor %11#0, %11#1 : tensor<3xui32>
    return %12 : tensor<3xui32>
  }
  func.func private @threefry2x32(%arg0: tensor<3xui32>, %arg1: tensor<3xui32>, %arg2: tensor<3xui32>, %arg3: tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>) {
    %0 = stablehlo.xor %arg0, %arg1 : tensor<3xui32>
    %c = stablehlo.constant dense<466688986> : tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %2 = stablehlo.xor %0, %1 : tensor<3xui32>
    %3 = stablehlo.add %arg2, %arg0 : tensor<3xui32>
    %4 = stablehlo.add %arg3, %arg1 : tensor<3xui32>
    %5 = stablehlo.add %3, %4 : tensor<3xui32>
    %c_0 = stablehlo.constant dense<13> : tensor<ui32>
    %6 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %7 = stablehlo.shift_left %4, %6 : tensor<3xui32>
    %c_1 = stablehlo.constant dense<19> : tensor<ui32>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %9 = stablehlo.shift_right_logical %4, %8 : tensor<3xui32>
    %10 = stablehlo.or %7, %9 : tensor<3xui32>
    %11 = stablehlo.xor %10, %5 : tensor<3xui32>
    %12 = stablehlo.add %5, %11 : tensor<3xui32>
    %c_2 = stablehlo.constant dense<15> : tensor<ui32>
    %13 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %14 = stablehlo.shift_left %11, %13 : tensor<3xui32>
    %c_3 = stablehlo.constant dense<17> : tensor<ui32>
    %15 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %16 = stablehlo.shift_right_logical %11, %15 : tensor<3xui32>
    %17 = stablehlo.or %14, %16 : tensor<3xui32>
    %18 = stablehlo.xor %17, %12 : tensor<3xui32>
    %19 = stablehlo.add %12, %18 : tensor<3xui32>
    %c_4 = stablehlo.constant dense<26> : tensor<ui32>
    %20 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %21 = stablehlo.shift_left %18, %20 : tensor<3xui32>
    %c_5 = stablehlo.constant dense<6> : tensor<ui32>
    %22 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %23 = stablehlo.shift_right_logical %18, %22 : tensor<3xui32>
    %24 = stablehlo.or %21, %23 : tensor<3xui32>
    %25 = stablehlo.xor %24, %19 : tensor<3xui32>
    %26 = stablehlo.add %19, %25 : tensor<3xui32>
    %c_6 = stablehlo.constant dense<6> : tensor<ui32>
    %27 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %28 = stablehlo.shift_left %25, %27 : tensor<3xui32>
    %c_7 = stablehlo.constant dense<26> : tensor<ui32>
    %29 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %30 = stablehlo.shift_right_logical %25, %29 : tensor<3xui32>
    %31 = stablehlo.or %28, %30 : tensor<3xui32>
    %32 = stablehlo.xor %31, %26 : tensor<3xui32>
    %33 = stablehlo.add %26, %arg1 : tensor<3xui32>
    %34 = stablehlo.add %32, %2 : tensor<3xui32>
    %c_8 = stablehlo.constant dense<1> : tensor<ui32>
    %35 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %36 = stablehlo.add %34, %35 : tensor<3xui32>
    %37 = stablehlo.add %33, %36 : tensor<3xui32>
    %c_9 = stablehlo.constant dense<17> : tensor<ui32>
    %38 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %39 = stablehlo.shift_left %36, %38 : tensor<3xui32>
    %c_10 = stablehlo.constant dense<15> : tensor<ui32>
    %40 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %41 = stablehlo.shift_right_logical %36, %40 : tensor<3xui32>
    %42 = stablehlo.or %39, %41 : tensor<3xui32>
    %43 = stablehlo.xor %42, %37 : tensor<3xui32>
    %44 = stablehlo.add %37, %43 : tensor<3xui32>
    %c_11 = stablehlo.constant dense<29> : tensor<ui32>
    %45 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %46 = stablehlo.shift_left %43, %45 : tensor<3xui32>
    %c_12 = stablehlo.constant dense<3> : tensor<ui32>
    %47 = stablehlo.broadcast_in_dim %c_12, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %48 = stablehlo.shift_right_logical %43, %47 : tensor<3xui32>
    %49 = stablehlo.or %46, %48 : tensor<3xui32>
    %50 = stablehlo.xor %49, %44 : tensor<3xui32>
    %51 = stablehlo.add %44, %50 : tensor<3xui32>
    %c_13 = stablehlo.constant dense<16> : tensor<ui32>
    %52 = stablehlo.broadcast_in_dim %c_13, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %53 = stablehlo.shift_left %50, %52 : tensor<3xui32>
    %c_14 = stablehlo.constant dense<16> : tensor<ui32>
    %54 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %55 = stablehlo.shift_right_logical %50, %54 : tensor<3xui32>
    %56 = stablehlo.or %53, %55 : tensor<3xui32>
    %57 = stablehlo.xor %56, %51 : tensor<3xui32>
    %58 = stablehlo.add %51, %57 : tensor<3xui32>
    %c_15 = stablehlo.constant dense<24> : tensor<ui32>
    %59 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %60 = stablehlo.shift_left %57, %59 : tensor<3xui32>
    %c_16 = stablehlo.constant dense<8> : tensor<ui32>
    %61 = stablehlo.broadcast_in_dim %c_16, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %62 = stablehlo.shift_right_logical %57, %61 : tensor<3xui32>
    %63 = stablehlo.or %60, %62 : tensor<3xui32>
    %64 = stablehlo.xor %63, %58 : tensor<3xui32>
    %65 = stablehlo.add %58, %2 : tensor<3xui32>
    %66 = stablehlo.add %64, %arg0 : tensor<3xui32>
    %c_17 = stablehlo.constant dense<2> : tensor<ui32>
    %67 = stablehlo.broadcast_in_dim %c_17, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %68 = stablehlo.add %66, %67 : tensor<3xui32>
    %69 = stablehlo.add %65, %68 : tensor<3xui32>
    %c_18 = stablehlo.constant dense<13> : tensor<ui32>
    %70 = stablehlo.broadcast_in_dim %c_18, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %71 = stablehlo.shift_left %68, %70 : tensor<3xui32>
    %c_19 = stablehlo.constant dense<19> : tensor<ui32>
    %72 = stablehlo.broadcast_in_dim %c_19, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %73 = stablehlo.shift_right_logical %68, %72 : tensor<3xui32>
    %74 = stablehlo.or %71, %73 : tensor<3xui32>
    %75 = stablehlo.xor %74, %69 : tensor<3xui32>
    %76 = stablehlo.add %69, %75 : tensor<3xui32>
    %c_20 = stablehlo.constant dense<15> : tensor<ui32>
    %77 = stablehlo.broadcast_in_dim %c_20, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %78 = stablehlo.shift_left %75, %77 : tensor<3xui32>
    %c_21 = stablehlo.constant dense<17> : tensor<ui32>
    %79 = stablehlo.broadcast_in_dim %c_21, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %80 = stablehlo.shift_right_logical %75, %79 : tensor<3xui32>
    %81 = stablehlo.or %78, %80 : tensor<3xui32>
    %82 = stablehlo.xor %81, %76 : tensor<3xui32>
    %83 = stablehlo.add %76, %82 : tensor<3xui32>
    %c_22 = stablehlo.constant dense<26> : tensor<ui32>
    %84 = stablehlo.broadcast_in_dim %c_22, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %85 = stablehlo.shift_left %82, %84 : tensor<3xui32>
    %c_23 = stablehlo.constant dense<6> : tensor<ui32>
    %86 = stablehlo.broadcast_in_dim %c_23, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %87 = stablehlo.shift_right_logical %82, %86 : tensor<3xui32>
    %88 = stablehlo.or %85, %87 : tensor<3xui32>
    %89 = stablehlo.xor %88, %83 : tensor<3xui32>
    %90 = stablehlo.add %83, %89 : tensor<3xui32>
    %c_24 = stablehlo.constant dense<6> : tensor<ui32>
    %91 = stablehlo.broadcast_in_dim %c_24, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %92 = stablehlo.shift_left %89, %91 : tensor<3xui32>
    %c_25 = stablehlo.constant dense<26> : tensor<ui32>
    %93 = stablehlo.broadcast_in_dim %c_25, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %94 = stablehlo.shift_right_logical %89, %93 : tensor<3xui32>
    %95 = stablehlo.or %92, %94 : tensor<3xui32>
    %96 = stablehlo.xor %95, %90 : tensor<3xui32>
    %97 = stablehlo.add %90, %arg0 : tensor<3xui32>
    %98 = stablehlo.add %96, %arg1 : tensor<3xui32>
    %c_26 = stablehlo.constant dense<3> : tensor<ui32>
    %99 = stablehlo.broadcast_in_dim %c_26, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %100 = stablehlo.add %98, %99 : tensor<3xui32>
    %101 = stablehlo.add %97, %100 : tensor<3xui32>
    %c_27 = stablehlo.constant dense<17> : tensor<ui32>
    %102 = stablehlo.broadcast_in_dim %c_27, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %103 = stablehlo.shift_left %100, %102 : tensor<3xui32>
    %c_28 = stablehlo.constant dense<15> : tensor<ui32>
    %104 = stablehlo.broadcast_in_dim %c_28, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %105 = stablehlo.shift_right_logical %100, %104 : tensor<3xui32>
    %106 = stablehlo.or %103, %105 : tensor<3xui32>
    %107 = stablehlo.xor %106, %101 : tensor<3xui32>
    %108 = stablehlo.add %101, %107 : tensor<3xui32>
    %c_29 = stablehlo.constant dense<29> : tensor<ui32>
    %109 = stablehlo.broadcast_in_dim %c_29, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %110 = stablehlo.shift_left %107, %109 : tensor<3xui32>
    %c_30 = stablehlo.constant dense<3> : tensor<ui32>
    %111 = stablehlo.broadcast_in_dim %c_30, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %112 = stablehlo.shift_right_logical %107, %111 : tensor<3xui32>
    %113 = stablehlo.or %110, %112 : tensor<3xui32>
    %114 = stablehlo.xor %113, %108 : tensor<3xui32>
    %115 = stablehlo.add %108, %114 : tensor<3xui32>
    %c_31 = stablehlo.constant dense<16> : tensor<ui32>
    %116 = stablehlo.broadcast_in_dim %c_31, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %117 = stablehlo.shift_left %114, %116 : tensor<3xui32>
    %c_32 = stablehlo.constant dense<16> : tensor<ui32>
    %118 = stablehlo.broadcast_in_dim %c_32, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %119 = stablehlo.shift_right_logical %114, %118 : tensor<3xui32>
    %120 = stablehlo.or %117, %119 : tensor<3xui32>
    %121 = stablehlo.xor %120, %115 : tensor<3xui32>
    %122 = stablehlo.add %115, %121 : tensor<3xui32>
    %c_33 = stablehlo.constant dense<24> : tensor<ui32>
    %123 = stablehlo.broadcast_in_dim %c_33, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %124 = stablehlo.shift_left %121, %123 : tensor<3xui32>
    %c_34 = stablehlo.constant dense<8> : tensor<ui32>
    %125 = stablehlo.broadcast_in_dim %c_34, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %126 = stablehlo.shift_right_logical %121, %125 : tensor<3xui32>
    %127 = stablehlo.or %124, %126 : tensor<3xui32>
    %128 = stablehlo.xor %127, %122 : tensor<3xui32>
    %129 = stablehlo.add %122, %arg1 : tensor<3xui32>
    %130 = stablehlo.add %128, %2 : tensor<3xui32>
    %c_35 = stablehlo.constant dense<4> : tensor<ui32>
    %131 = stablehlo.broadcast_in_dim %c_35, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %132 = stablehlo.add %130, %131 : tensor<3xui32>
    %133 = stablehlo.add %129, %132 : tensor<3xui32>
    %c_36 = stablehlo.constant dense<13> : tensor<ui32>
    %134 = stablehlo.broadcast_in_dim %c_36, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %135 = stablehlo.shift_left %132, %134 : tensor<3xui32>
    %c_37 = stablehlo.constant dense<19> : tensor<ui32>
    %136 = stablehlo.broadcast_in_dim %c_37, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %137 = stablehlo.shift_right_logical %132, %136 : tensor<3xui32>
    %138 = stablehlo.or %135, %137 : tensor<3xui32>
    %139 = stablehlo.xor %138, %133 : tensor<3xui32>
    %140 = stablehlo.add %133, %139 : tensor<3xui32>
    %c_38 = stablehlo.constant dense<15> : tensor<ui32>
    %141 = stablehlo.broadcast_in_dim %c_38, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %142 = stablehlo.shift_left %139, %141 : tensor<3xui32>
    %c_39 = stablehlo.constant dense<17> : tensor<ui32>
    %143 = stablehlo.broadcast_in_dim %c_39, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %144 = stablehlo.shift_right_logical %139, %143 : tensor<3xui32>
    %145 = stablehlo.or %142, %144 : tensor<3xui32>
    %146 = stablehlo.xor %145, %140 : tensor<3xui32>
    %147 = stablehlo.add %140, %146 : tensor<3xui32>
    %c_40 = stablehlo.constant dense<26> : tensor<ui32>
    %148 = stablehlo.broadcast_in_dim %c_40, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %149 = stablehlo.shift_left %146, %148 : tensor<3xui32>
    %c_41 = stablehlo.constant dense<6> : tensor<ui32>
    %150 = stablehlo.broadcast_in_dim %c_41, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %151 = stablehlo.shift_right_logical %146, %150 : tensor<3xui32>
    %152 = stablehlo.or %149, %151 : tensor<3xui32>
    %153 = stablehlo.xor %152, %147 : tensor<3xui32>
    %154 = stablehlo.add %147, %153 : tensor<3xui32>
    %c_42 = stablehlo.constant dense<6> : tensor<ui32>
    %155 = stablehlo.broadcast_in_dim %c_42, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %156 = stablehlo.shift_left %153, %155 : tensor<3xui32>
    %c_43 = stablehlo.constant dense<26> : tensor<ui32>
    %157 = stablehlo.broadcast_in_dim %c_43, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %158 = stablehlo.shift_right_logical %153, %157 : tensor<3xui32>
    %159 = stablehlo.or %156, %158 : tensor<3xui32>
    %160 = stablehlo.xor %159, %154 : tensor<3xui32>
    %161 = stablehlo.add %154, %2 : tensor<3xui32>
    %162 = stablehlo.add %160, %arg0 : tensor<3xui32>
    %c_44 = stablehlo.constant dense<5> : tensor<ui32>
    %163 = stablehlo.broadcast_in_dim %c_44, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %164 = stablehlo.add %162, %163 : tensor<3xui32>
    return %161, %164 : tensor<3xui32>, tensor<3xui32>
  }
}
