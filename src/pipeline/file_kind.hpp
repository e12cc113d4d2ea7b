// SPDX-License-Identifier: Apache-2.0
// What a file is, by its first bytes.
#pragma once

#include <cstdint>

#include "base/tensor.hpp"

namespace carina::pipeline {

enum class FileKind : uint8_t {
  Unknown,
  Program,     // .pte
  Bundle,      // .bpte
  TensorData,  // .ptd
  Tflite,
  Tosa,
  Archive,       // zip: .pt2, .npz
  Array,         // .npy
  DelegateBlob,  // .bin
  Payload,       // driver payload, COP1 or COP2
};

FileKind fileKind(ByteSpan bytes);
const char* fileKindName(FileKind kind);  // "program (.pte)", ...

}  // namespace carina::pipeline
