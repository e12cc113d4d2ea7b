// SPDX-License-Identifier: Apache-2.0
#include "device/ethosn_backend.hpp"

#include <cstring>

#include "device/recording_backend.hpp"
#include "pte/program.hpp"

namespace carina::device {
namespace {

constexpr std::chrono::minutes kPatience{1};

}  // namespace

std::string ethosNTarget(const pte::Program& program) {
  for (const pte::Method& method : program.methods) {
    for (const pte::Delegate& delegate : method.delegates) {
      if (delegate.id != ethosn::kProgramBackend) continue;
      const auto blob = ethosn::readProgramBlob(delegate.blob);
      if (blob) return blob->target;
    }
  }
  return "";
}

Result<std::unique_ptr<EthosNBackend::Part>> EthosNBackend::open(ByteSpan bytes) const {
  auto part = std::make_unique<Part>();
  CARINA_TRY(part->blob, ethosn::readProgramBlob(bytes));
  CARINA_TRY(const ethosn::Variant* variant, ethosn::findVariant(part->blob.target));
  CARINA_TRY(const ethosn::Target target, ethosn::makeTarget(*variant, part->blob.sramBytes));
  ethosn::RunOptions options;
  options.hazards = hazards_;
  options.budget = &budget_;
  part->device = std::make_unique<ethosn::ModelDevice>(target, options);
  CARINA_TRY(part->network, part->device->createNetwork(part->blob.network));
  return part;
}

/// Called once the buffers are known to be no larger than the tensors of the program.
Status EthosNBackend::makeBuffers(Part& part) {
  const auto buffers = [&](const std::vector<ethosn::BufferInfo>& infos, auto& into) -> Status {
    for (size_t i = into.size(); i < infos.size(); ++i) {
      CARINA_TRY(auto buffer, part.device->createBuffer(infos[i].size));
      into.push_back(std::move(buffer));
    }
    return {};
  };
  CARINA_RETURN_IF_ERROR(buffers(part.blob.network.inputs, part.inputs));
  return buffers(part.blob.network.outputs, part.outputs);
}

rt::Status EthosNBackend::prepare(rt::Bytes blob, const rt::NamedData&, void* state, size_t* temporaryBytes) {
  *temporaryBytes = 0;
  uint64_t index = 0;
  while (index < parts_.size() && parts_[index]->bytes != blob.data) ++index;
  if (index == parts_.size()) {
    auto part = open({reinterpret_cast<const std::byte*>(blob.data), blob.size});
    if (!part) {
      why_ = std::move(part).error();
      return rt::failure(rt::Code::CorruptDelegate, "the NPU part for an Ethos-N cannot be loaded");
    }
    (*part)->bytes = blob.data;
    parts_.push_back(std::move(*part));
  }
  std::memcpy(state, &index, sizeof(index));
  return {};
}

const EthosNBackend::Part& EthosNBackend::partOf(const void* state) const {
  uint64_t index = 0;
  std::memcpy(&index, state, sizeof(index));
  CARINA_CHECK(index < parts_.size(), "the state was prepared here");
  return *parts_[index];
}

rt::Status EthosNBackend::checkCall(const void* state, rt::Span<const rt::Value> values,
                                    rt::Span<const int32_t> arguments) const {
  const Part& part = partOf(state);
  const ethosn::CompiledNetwork& network = part.blob.network;
  const size_t inputs = network.inputs.size(), outputs = network.outputs.size();
  if (arguments.size != inputs + outputs) {
    return rt::failure(rt::Code::InvalidArgument,
                       "a delegate call has a different number of arguments than its compiled network");
  }
  const auto fits = [&](size_t argument, uint32_t bytes) {
    const int32_t id = arguments[argument];
    if (id < 0 || static_cast<size_t>(id) >= values.size) return false;
    const rt::Value& value = values[static_cast<size_t>(id)];
    return value.kind == rt::ValueKind::Tensor && value.tensor.bytes == bytes &&
           rt::elementSize(value.tensor.type) == 1;
  };
  for (size_t i = 0; i < inputs; ++i) {
    if (!fits(part.blob.inputs[i], network.inputs[i].size)) {
      return rt::failure(rt::Code::ShapeMismatch,
                         "an input of a delegate call is not a tensor of the size that its network takes",
                         static_cast<uint32_t>(i));
    }
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (!fits(inputs + part.blob.outputs[i], network.outputs[i].size)) {
      return rt::failure(rt::Code::ShapeMismatch,
                         "an output of a delegate call is not a tensor of the size that its network returns",
                         static_cast<uint32_t>(i));
    }
  }
  return {};
}

Status EthosNBackend::run(Part& part, rt::Span<rt::Value> values, rt::Span<const int32_t> arguments) {
  const auto tensor = [&](size_t argument) -> const rt::Tensor& {
    return values[static_cast<size_t>(arguments[argument])].tensor;
  };
  CARINA_RETURN_IF_ERROR(makeBuffers(part));
  std::vector<ethosn::DeviceBuffer*> inputs, outputs;
  EthosNDelegateRun run;
  for (size_t i = 0; i < part.inputs.size(); ++i) {
    const rt::Tensor& from = tensor(part.blob.inputs[i]);
    CARINA_RETURN_IF_ERROR(part.inputs[i]->write({static_cast<const std::byte*>(from.data), from.bytes}));
    inputs.push_back(part.inputs[i].get());
  }
  for (size_t i = 0; keepIo_ && i < part.inputs.size(); ++i) {
    CARINA_TRY(Tensor copy, copyOut(tensor(i)));
    run.inputs.push_back(std::move(copy));
  }
  for (const auto& output : part.outputs) outputs.push_back(output.get());
  CARINA_TRY(const auto inference, part.network->schedule(inputs, outputs));
  CARINA_TRY(const ethosn::InferenceState state, inference->wait(kPatience));
  if (state != ethosn::InferenceState::Completed)
    return fail(Code::NpuFault, "the NPU did not finish an inference in a minute");
  for (size_t i = 0; i < part.outputs.size(); ++i) {
    const rt::Tensor& to = tensor(part.inputs.size() + part.blob.outputs[i]);
    CARINA_RETURN_IF_ERROR(part.outputs[i]->read({static_cast<std::byte*>(to.data), to.bytes}));
  }
  for (size_t i = 0; keepIo_ && i < part.outputs.size(); ++i) {
    CARINA_TRY(Tensor copy, copyOut(tensor(part.inputs.size() + i)));
    run.outputs.push_back(std::move(copy));
  }
  run.instruction = instruction_;
  run.target = part.blob.target;
  run.result = part.device->last();
  runs_.push_back(std::move(run));
  return {};
}

rt::Status EthosNBackend::execute(void* state, rt::Span<rt::Value> values, rt::Span<const int32_t> arguments,
                                  rt::Arena&) {
  auto& part = const_cast<Part&>(partOf(state));
  if (auto status = run(part, values, arguments); !status.ok()) {
    why_ = std::move(status).error();
    return rt::failure(rt::Code::DeviceFault, "the Ethos-N stopped with a fault");
  }
  return {};
}

}  // namespace carina::device
