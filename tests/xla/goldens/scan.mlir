module @jit_scanned attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<2xf32> {jax.result_info = "result[1]['sum']"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:3 = stablehlo.while(%iterArg = %c, %iterArg_1 = %cst, %iterArg_2 = %0) : tensor<i32>, tensor<f32>, tensor<2xf32>
    cond {
      %c_3 = stablehlo.constant dense<2> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %c_4 = stablehlo.constant dense<0> : tensor<i32>
      %2 = stablehlo.dynamic_slice %arg0, %iterArg, %c_4, sizes = [1, 3] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
      %3 = stablehlo.reshape %2 : (tensor<1x3xf32>) -> tensor<3xf32>
      %4:2 = func.call @closed_call(%iterArg_1, %3) : (tensor<f32>, tensor<3xf32>) -> (tensor<f32>, tensor<f32>)
      %c_5 = stablehlo.constant dense<0> : tensor<i32>
      %5 = stablehlo.reshape %4#1 : (tensor<f32>) -> tensor<1xf32>
      %6 = stablehlo.dynamic_update_slice %iterArg_2, %5, %iterArg : (tensor<2xf32>, tensor<1xf32>, tensor<i32>) -> tensor<2xf32>
      %7 = stablehlo.add %iterArg, %c_3 : tensor<i32>
      stablehlo.return %7, %4#0, %6 : tensor<i32>, tensor<f32>, tensor<2xf32>
    }
    return %1#1, %1#2 : tensor<f32>, tensor<2xf32>
  }
  func.func private @closed_call(%arg0: tensor<f32>, %arg1: tensor<3xf32>) -> (tensor<f32>, tensor<f32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg1 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.add %arg0, %0 : tensor<f32>
    return %1, %arg0 : tensor<f32>, tensor<f32>
  }
}
