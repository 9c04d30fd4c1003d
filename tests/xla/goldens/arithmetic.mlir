module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2x3xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.333333343> : tensor<2x3xf32>
    %0 = stablehlo.sine %arg0 : tensor<2x3xf32>
    %1 = stablehlo.add %0, %cst : tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
