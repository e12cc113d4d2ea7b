// SPDX-License-Identifier: Apache-2.0
// The CPU kernels of this library, one function per kind. A firmware's table names the ones its program
// calls:
//   const Kernel kernels[] = {{"cortex_m::quantize_per_tensor.out", kernels::quantizePerTensor}, ...};
// allKernels() lists every name with its function. Kernels take the arguments of ExecuTorch's out-variant
// schemas.
#pragma once

#include "carina/kernel.hpp"

namespace carina::rt::kernels {

/// (float32 input, scale, zero point, min, max[, dtype], out): clamp(zp + rint(x / scale as x * (1 /
/// scale))), ties to even. NaN becomes the zero point. Serves quantized_decomposed:: and cortex_m::.
Status quantizePerTensor(KernelContext& context);
/// (integer input, scale, zero point, min, max[, dtype[, out_dtype]], out): (q - zp) * scale in float32.
Status dequantizePerTensor(KernelContext& context);
/// (float32 input, scales, zero points, axis, min, max, dtype, out); scales float32 or float64, zero points
/// int64 or int32.
Status quantizePerChannel(KernelContext& context);
/// (integer input, scales, zero points or null, axis, min, max, dtype, out_dtype, out).
Status dequantizePerChannel(KernelContext& context);

/// (input, ..., out): the same elements in the output's type and dimension order: _to_copy,
/// _to_dim_order_copy, clone, _clone_dim_order, copies that only add or drop dimensions of size 1.
Status convertCopy(KernelContext& context);
/// (input, int[] dims, out)
Status permuteCopy(KernelContext& context);
/// (input, dim0, dim1, out)
Status transposeCopy(KernelContext& context);
/// (input, int[] size, out): the same bytes under another shape; row-major tensors.
Status viewCopy(KernelContext& context);
/// (input, int[] size, out): like viewCopy, and an output without memory shows the input's.
Status viewAlias(KernelContext& context);

/// (input, min, max, out), either bound may be null; relu: (input, out). float32 and integers.
Status clamp(KernelContext& context);
Status relu(KernelContext& context);

}  // namespace carina::rt::kernels
