// SPDX-License-Identifier: Apache-2.0
// Behind the reader there are no complex numbers: a complex tensor x of an archive is two tensors of the
// graph, "x.real" and "x.imag" (names in archives are Python identifiers, which have no dots).
#pragma once

#include "pt2/build_node.hpp"
#include "pt2/document.hpp"
#include "pt2/stored_tensor.hpp"

namespace carina::pt2 {

/// A tensor of complex numbers.
struct Parts {
  ir::Value* real = nullptr;
  ir::Value* imag = nullptr;  // null: zeros
};

enum class Part : uint8_t { Real, Imag };

bool isComplex(const TensorMeta& meta);
/// Whether the document describes the tensor as complex.
bool isComplex(const GraphDocument& document, const std::string& name);

/// "x.real" or "x.imag".
std::string partName(const std::string& name, Part part);
/// complex64 -> float32, by the serializer's numbers; other types are unchanged.
int64_t partType(int64_t scalarType);
/// The description of either part of a complex tensor; that of other tensors is unchanged.
TensorMeta partMeta(const TensorMeta& meta);
/// Every second element of a storage of complex numbers. Fails if strides or offset overflow.
Result<StoredTensor> partOf(const StoredTensor& stored, Part part);

/// The parts of a complex tensor, or a real tensor as complex numbers without an imaginary part.
Result<Parts> findParts(const Scope& scope, const std::string& name);
/// Defines the parts of a complex tensor. Fails if the name is already defined.
Status defineParts(Scope& scope, const std::string& name, const Parts& parts);

/// Complex numbers as a real tensor with one more dimension, [..., 2], as torch.view_as_real() returns them,
/// and back.
ir::Value* joinParts(const ir::Builder& builder, const Parts& parts);
Parts splitParts(const ir::Builder& builder, ir::Value* pairs);

}  // namespace carina::pt2
