// SPDX-License-Identifier: Apache-2.0
// A program as text, for `inspect` and for tests.
#include <fmt/ranges.h>

#include "pte/delegate_blob.hpp"
#include "pte/program.hpp"

namespace carina::pte {
namespace {

class Printer {
 public:
  std::string print(const Program& program, const FileLayout* layout) {
    if (layout != nullptr) printLayout(*layout);
    size_t constantBytes = 0;
    for (const ByteVector& constant : program.constants) constantBytes += constant.size();
    if (program.constants.size() > 1)
      line("constants: {} ({} bytes)", program.constants.size() - 1, constantBytes);
    if (program.mutableData.size() > 1) line("initial values: {}", program.mutableData.size() - 1);
    for (const NamedData& named : program.namedData)
      line("named data: {} ({} bytes)", named.key, named.bytes.size());
    for (const Method& method : program.methods) printMethod(method);
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void printLayout(const FileLayout& layout) {
    line("file: {} bytes, flatbuffer {} bytes{}", layout.fileBytes, layout.programBytes,
         layout.extendedHeader ? ", extended header" : "");
    for (size_t i = 0; i < layout.segments.size(); ++i) {
      line("segment {}: {} bytes at {}", i, layout.segments[i].size,
           layout.segmentBase + layout.segments[i].offset);
    }
    if (layout.deprecatedConstants) line("constants lie in the flatbuffer (deprecated form)");
  }

  static std::string describe(const Tensor& tensor) {
    std::string text = tensor.str();
    bool rowMajor = true;
    for (size_t d = 0; d < tensor.dimOrder.size(); ++d) rowMajor = rowMajor && tensor.dimOrder[d] == d;
    if (!rowMajor) text += fmt::format(" order [{}]", fmt::join(tensor.dimOrder, ","));
    if (tensor.dynamism == ShapeDynamism::DynamicBound) text += " dynamic up to";
    if (tensor.dynamism == ShapeDynamism::DynamicUnbound) text += " dynamic";
    if (tensor.allocation)
      text += fmt::format(" @ pool {} + {}", tensor.allocation->memoryId, tensor.allocation->offset);
    if (tensor.dataIndex != 0)
      text += fmt::format(" {} {}", tensor.allocation ? "initial value" : "constant", tensor.dataIndex);
    if (tensor.extra && !tensor.extra->name.empty()) text += fmt::format(" \"{}\"", tensor.extra->name);
    if (tensor.extra && tensor.extra->external) text += " external";
    if (tensor.extra && tensor.extra->deviceType != 0)
      text += fmt::format(" on device {} of type {}", tensor.extra->deviceIndex, tensor.extra->deviceType);
    return text;
  }
  static std::string describe(const Value& value) {
    struct Visitor {
      std::string operator()(const None&) const { return "none"; }
      std::string operator()(const Null&) const { return "null"; }
      std::string operator()(int64_t v) const { return fmt::format("int {}", v); }
      std::string operator()(bool v) const { return fmt::format("bool {}", v); }
      std::string operator()(double v) const { return fmt::format("double {}", v); }
      std::string operator()(const Tensor& v) const { return describe(v); }
      std::string operator()(const std::string& v) const { return fmt::format("\"{}\"", v); }
      std::string operator()(const IntList& v) const {
        return fmt::format("ints of values [{}]", fmt::join(v.items, ","));
      }
      std::string operator()(const DoubleList& v) const {
        return fmt::format("doubles [{}]", fmt::join(v.items, ","));
      }
      std::string operator()(const BoolList& v) const {
        return fmt::format("bools [{}]", fmt::join(v.items, ","));
      }
      std::string operator()(const TensorList& v) const {
        return fmt::format("tensors [{}]", fmt::join(v.items, ","));
      }
      std::string operator()(const OptionalTensorList& v) const {
        return fmt::format("optional tensors [{}]", fmt::join(v.items, ","));
      }
    };
    return std::visit(Visitor{}, value);
  }

  void printMethod(const Method& method) {
    line("method {}: inputs [{}] outputs [{}]", method.name, fmt::join(method.inputs, ","),
         fmt::join(method.outputs, ","));
    for (size_t i = 1; i < method.pools.size(); ++i) line("  pool {}: {} bytes", i, method.pools[i]);
    for (const PoolDevice& device : method.poolDevices)
      line("  pool {} lies on device {} of type {}", device.pool, device.index, device.type);
    for (size_t i = 0; i < method.values.size(); ++i) line("  %{} = {}", i, describe(method.values[i]));
    for (size_t i = 0; i < method.delegates.size(); ++i) printDelegate(i, method.delegates[i]);
    for (const Chain& chain : method.chains) {
      for (size_t i = 0; i < chain.instructions.size(); ++i) {
        printInstruction(i, method, chain.instructions[i]);
        if (i < chain.stacktraces.size()) printFrames(chain.stacktraces[i]);
      }
    }
  }

  void printFrames(const std::vector<Frame>& frames) {
    for (const Frame& frame : frames) line("         at {}:{} in {}", frame.filename, frame.line, frame.name);
  }

  void printDelegate(size_t index, const Delegate& delegate) {
    line("  delegate {}: {}, {} bytes{}", index, delegate.id, delegate.blob.size(),
         delegate.inSegment ? " in a segment" : "");
    for (const CompileSpec& spec : delegate.specs) line("    {} = {}", spec.key, spec.value);
    if (delegate.id != kEthosUBackend) return;
    const auto blob = parseDelegateBlob(delegate.blob);
    if (!blob) {
      line("    {}", blob.error().message());
      return;
    }
    line("    payload {} bytes, constants {} bytes, scratch {} bytes", blob->payload.size(),
         blob->constants.size(), blob->scratchBytes);
    for (const BlobIo& io : blob->inputs)
      line("    input [{}] x {} bytes at {} of region {}", fmt::join(io.shape, ","), io.elementBytes,
           io.offset, io.region);
    for (const BlobIo& io : blob->outputs)
      line("    output [{}] x {} bytes at {} of region {}", fmt::join(io.shape, ","), io.elementBytes,
           io.offset, io.region);
  }

  static std::string references(const std::vector<int32_t>& arguments) {
    std::string text;
    for (int32_t argument : arguments) text += fmt::format("{}%{}", text.empty() ? "" : ", ", argument);
    return text;
  }
  void printInstruction(size_t index, const Method& method, const Instruction& instruction) {
    if (const auto* kernel = std::get_if<KernelCall>(&instruction)) {
      const bool known = kernel->op >= 0 && static_cast<size_t>(kernel->op) < method.operators.size();
      line("  {:>3}: {}({})", index, known ? method.operators[static_cast<size_t>(kernel->op)].str() : "?",
           references(kernel->arguments));
    } else if (const auto* call = std::get_if<DelegateCall>(&instruction)) {
      line("  {:>3}: delegate {}({})", index, call->delegate, references(call->arguments));
    } else if (const auto* move = std::get_if<MoveCall>(&instruction)) {
      line("  {:>3}: %{} = %{}", index, move->to, move->from);
    } else if (const auto* jump = std::get_if<JumpFalseCall>(&instruction)) {
      line("  {:>3}: if not %{} goto {}", index, jump->condition, jump->destination);
    } else {
      line("  {:>3}: free %{}", index, std::get<FreeCall>(instruction).value);
    }
  }

  std::string text_;
};

}  // namespace

std::string printProgram(const Program& program, const FileLayout* layout) {
  return Printer().print(program, layout);
}

}  // namespace carina::pte
