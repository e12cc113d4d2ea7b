// SPDX-License-Identifier: Apache-2.0
// Tensors and delegate data that a program stores in other files (.ptd), for the runtime.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/result.hpp"
#include "carina/backend.hpp"
#include "device/aligned_buffer.hpp"
#include "pte/program.hpp"
#include "pte/tensor_data.hpp"

namespace carina::device {

class ExternalData final : public rt::NamedData {
 public:
  ~ExternalData() = default;
  /// Adds every entry. A name that another file already contains is an error.
  Status add(const pte::TensorData& data);
  rt::Status find(rt::Text key, rt::Bytes* bytes) const override;

 private:
  std::map<std::string, AlignedBuffer, std::less<>> entries_;
};

/// Checks that the tensors that `program` expects from other files have the element types and shapes that the
/// files state. Names that no file contains are ignored: loading reports them.
Status checkLayouts(const pte::Program& program, std::span<const pte::TensorData> files);

}  // namespace carina::device
