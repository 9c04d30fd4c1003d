module @jit_effects attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2x3xf32> {jax.result_info = "result"}) {
    stablehlo.custom_call @xla_ffi_python_cpu_callback(%arg0) {backend_config = "", has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}, operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = []} : (tensor<2x3xf32>) -> ()
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.create_token : !stablehlo.token
    %1:4 = stablehlo.while(%iterArg = %0, %iterArg_1 = %c_0, %iterArg_2 = %c, %iterArg_3 = %arg0) : !stablehlo.token, tensor<i32>, tensor<i32>, tensor<2x3xf32>
    cond {
      %c_4 = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg_1, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %2:3 = func.call @closed_call(%iterArg, %iterArg_2, %iterArg_3) : (!stablehlo.token, tensor<i32>, tensor<2x3xf32>) -> (!stablehlo.token, tensor<i32>, tensor<2x3xf32>)
      %3 = stablehlo.add %iterArg_1, %c_4 : tensor<i32>
      stablehlo.return %2#0, %3, %2#1, %2#2 : !stablehlo.token, tensor<i32>, tensor<i32>, tensor<2x3xf32>
    }
    return %1#3 : tensor<2x3xf32>
  }
  func.func private @closed_call(%arg0: !stablehlo.token, %arg1: tensor<i32>, %arg2: tensor<2x3xf32>) -> (!stablehlo.token, tensor<i32>, tensor<2x3xf32>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %arg1, %c : tensor<i32>
    %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%arg0, %arg2) {backend_config = "", has_side_effect = true, mhlo.backend_config = {index = 1 : ui64}, operand_layouts = [dense<> : tensor<0xindex>, dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<> : tensor<0xindex>]} : (!stablehlo.token, tensor<2x3xf32>) -> !stablehlo.token
    %2 = stablehlo.sine %arg2 : tensor<2x3xf32>
    return %1, %0, %2 : !stablehlo.token, tensor<i32>, tensor<2x3xf32>
  }
}
