// SPDX-License-Identifier: Apache-2.0
// Programs whose FlatBuffer shares parts: n entries each refer to the same n items, in a file whose size is
// linear in n.
#pragma once

#include <string>
#include <vector>

#include "pte/schema.hpp"

namespace carina::pte {

class SharedParts {
 public:
  explicit SharedParts(size_t count) : count_(count) {}

  /// Instructions that share one vector of arguments.
  std::string arguments() {
    const auto one = fb::CreateEValue(b_, fb::Content::IntValue, fb::CreateIntValue(b_, 1).Union());
    const auto shared = b_.CreateVector(std::vector<int32_t>(count_, 0));
    const auto call = fb::CreateKernel(b_, 0, shared).Union();
    const auto entry = fb::CreateInstructionEntry(b_, fb::Action::Kernel, call);
    return finish({one}, std::vector(count_, entry));
  }
  /// Lists of integers that share one vector of items.
  std::string integers() {
    const auto one = fb::CreateEValue(b_, fb::Content::IntValue, fb::CreateIntValue(b_, 1).Union());
    const auto shared = b_.CreateVector(std::vector<int64_t>(count_, 0));
    const auto list = fb::CreateIntListValue(b_, shared).Union();
    std::vector values(count_, fb::CreateEValue(b_, fb::Content::IntListValue, list));
    values[0] = one;
    return finish(values, {});
  }
  /// Tensors of other files, all with one long name that almost matches that of every blob in the program.
  std::string names() {
    const auto wanted = b_.CreateString(std::string(count_, 'x') + "y");
    const auto present = b_.CreateString(std::string(count_, 'x') + "z");
    const auto sizes = b_.CreateVector(std::vector<int32_t>{1});
    const auto order = b_.CreateVector(std::vector<uint8_t>{0});
    const auto extra = fb::CreateExtraInfo(b_, 0, wanted, 1);
    const auto tensor = fb::CreateTensorValue(b_, 1, 0, sizes, order, false, 0, 0, 0, 0, extra).Union();
    const std::vector values(count_, fb::CreateEValue(b_, fb::Content::TensorValue, tensor));
    named_.assign(count_, fb::CreateNamedEntry(b_, present, 0));
    return finish(values, {});
  }

 private:
  std::string finish(const std::vector<flatbuffers::Offset<fb::EValue>>& values,
                     const std::vector<flatbuffers::Offset<fb::InstructionEntry>>& instructions) {
    const auto none = b_.CreateVector(std::vector<int32_t>());
    const auto chain = fb::CreateChainEntry(b_, none, none, b_.CreateVector(instructions));
    const auto chains = b_.CreateVector(std::vector{chain});
    const auto op = fb::CreateOperatorEntry(b_, b_.CreateString("aten::add"), b_.CreateString("out"));
    const auto operators = b_.CreateVector(std::vector{op});
    const auto delegates = b_.CreateVector(std::vector<flatbuffers::Offset<fb::DelegateEntry>>());
    const auto name = b_.CreateString("forward");
    const auto list = b_.CreateVector(values);
    const auto pools = b_.CreateVector(std::vector<int64_t>{0});
    const auto plan = fb::CreatePlanEntry(b_, name, 0, list, none, none, chains, operators, delegates, pools);
    const auto plans = b_.CreateVector(std::vector{plan});
    const auto segments = b_.CreateVector(std::vector{fb::SegmentBuilder(b_).Finish()});
    const auto named = b_.CreateVector(named_);
    b_.Finish(fb::CreateRoot(b_, 0, plans, 0, 0, segments, 0, 0, named), "ET12");
    return {reinterpret_cast<const char*>(b_.GetBufferPointer()), b_.GetSize()};
  }

  size_t count_;
  flatbuffers::FlatBufferBuilder b_;
  std::vector<flatbuffers::Offset<fb::NamedEntry>> named_;
};

}  // namespace carina::pte
