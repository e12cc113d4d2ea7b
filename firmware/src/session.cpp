// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include "console.hpp"
#include "cortex_m.hpp"
#include "npu.hpp"
#include "stack.hpp"

namespace carina::firmware {

using rt::EventKind;
using rt::Status;
using rt::Tensor;
using rt::Value;
using rt::ValueKind;

namespace {

void setOne(rt::ScalarType type, rt::MutableBytes elements) {
  const size_t size = rt::elementSize(type);
  uint64_t one = 1;
  if (type == rt::ScalarType::Float32) one = 0x3f800000u;
  if (type == rt::ScalarType::Float64) one = uint64_t{0x3ff00000u} << 32;
  if (type == rt::ScalarType::Float16) one = 0x3c00u;
  if (type == rt::ScalarType::BFloat16) one = 0x3f80u;
  for (size_t at = 0; at < elements.size; at += size) __builtin_memcpy(elements.data + at, &one, size);
}

template <typename T>
T at(const Tensor& tensor, size_t i) {
  return tensor.as<const T>()[i];
}

/// Prints the element with the word for its type that readers of such logs know.
void putElement(const Tensor& tensor, size_t i) {
  switch (tensor.type) {
    case rt::ScalarType::Float32:
      put("(float) ");
      return put(at<float>(tensor, i));
    case rt::ScalarType::Int8:
      put("(char) ");
      return put(int32_t{at<int8_t>(tensor, i)});
    case rt::ScalarType::UInt8:
      put("(byte) ");
      return put(uint32_t{at<uint8_t>(tensor, i)});
    case rt::ScalarType::Int16:
      put("(short) ");
      return put(int32_t{at<int16_t>(tensor, i)});
    case rt::ScalarType::Int32:
      put("(int) ");
      return put(at<int32_t>(tensor, i));
    case rt::ScalarType::Int64:
      put("(long) ");
      return put(at<int64_t>(tensor, i));
    case rt::ScalarType::Bool:
      put("(bool) ");
      return put(at<uint8_t>(tensor, i) != 0 ? "true" : "false");
    default:
      put("(");
      put(rt::scalarTypeText(tensor.type));
      put(") ?");
  }
}

/// " (12482.00 per inference)"
void putPerInference(uint64_t total, uint32_t inferences) {
  put(" (");
  put(Hundredths{total / inferences * 100 + total % inferences * 100 / inferences});
  put(" per inference)");
}

void line(const char* name, uint64_t total, const char* unit, uint32_t inferences) {
  put("I [carina] ");
  put(name);
  put(total);
  put(unit);
  putPerInference(total, inferences);
  put('\n');
}

void percentage(const char* name, uint64_t part, uint64_t whole) {
  info(name, Hundredths{whole == 0 ? 0 : part * 10000 / whole}, " %");
}

void usage(const char* name, size_t used, size_t size) {
  info(name, used, " / ", size, " free: ", size - used,
       " ( used: ", static_cast<uint32_t>(size == 0 ? 0 : uint64_t{used} * 100 / size), " % )");
}

}  // namespace

bool Session::open(rt::Bytes program) {
  char identifier[5] = {};
  if (program.size >= 8) __builtin_memcpy(identifier, program.data + 4, 4);
  info("Carina on ", app_.platform.name, ", program for ", app_.target);
  info("PTE @ ", Hex{static_cast<uint32_t>(reinterpret_cast<uintptr_t>(program.data))}, " [----", identifier,
       "] ", app_.name);
  Status status = rt::Program::load(program, &program_);
  if (status.ok() && app_.openNpu != nullptr) {
    status = app_.openNpu(app_, &npu_);
    if (status.ok()) {
      backends_[0] = &npu_->delegate;
      info("NPU config ", Hex{npu_->driver.info().config}, ", id ", Hex{npu_->driver.info().id}, ", ",
           npu_->driver.info().macsPerCycle(), " MACs per cycle");
    }
  }
  if (!status.ok()) {
    error(status);
    return false;
  }
  return restart();
}

bool Session::openSharingNpu(const Session& first) {
  npu_ = first.npu_;
  backends_[0] = first.backends_[0];
  const Status status = rt::Program::load(app_.program, &program_);
  if (!status.ok()) error(status);
  return status.ok() && restart();
}

bool Session::restart() {
  setup_ = &app_.methods[index_];
  rt::Environment environment;
  environment.kernels = app_.kernels;
  environment.backends = rt::Span<rt::Backend* const>(backends_, npu_ != nullptr ? 1 : 0);
  environment.profiler = this;
  const Status status = method_.load(program_, setup_->index, environment, setup_->memory);
  if (!status.ok()) error(status);
  return status.ok() && bindUnplanned();
}

uint64_t Session::npuCycles() const {
  return npu_ != nullptr ? npu_->delegate.cycles() : 0;
}

bool Session::bindUnplanned() {
  rt::Arena arena(setup_->io);
  for (uint32_t i = 0; i < method_.inputCount() + method_.outputCount(); ++i) {
    const bool input = i < method_.inputCount();
    const uint32_t index = input ? i : i - method_.inputCount();
    const Value& value = input ? method_.input(index) : method_.output(index);
    if (value.kind != ValueKind::Tensor) {
      error(input ? "input " : "output ", index, " is no tensor");
      return false;
    }
    if (value.tensor.data != nullptr || value.tensor.bytes == 0) continue;
    uint8_t* memory = static_cast<uint8_t*>(arena.allocate(value.tensor.bytes, 16));
    Status status = rt::failure(rt::Code::OutOfMemory, "no memory for an input or output", index);
    if (memory != nullptr) {
      const rt::MutableBytes bytes(memory, value.tensor.bytes);
      status = input ? method_.setInput(index, bytes) : method_.bindOutput(index, bytes);
    }
    if (!status.ok()) {
      error(status);
      return false;
    }
  }
  return true;
}

bool Session::inputMemory(uint32_t index, rt::MutableBytes* bytes) {
  const Status status = method_.inputMemory(index, bytes);
  if (!status.ok()) error(status);
  return status.ok();
}

bool Session::fillWithOnes() {
  rt::MutableBytes bytes;
  for (uint32_t i = 0; i < method_.inputCount(); ++i) {
    if (!inputMemory(i, &bytes)) return false;
    setOne(method_.input(i).tensor.type, bytes);
  }
  return true;
}

bool Session::infer() {
  const Status status = execute();
  if (!status.ok()) explain(status);
  return status.ok();
}

Status Session::execute() {
  const Status status = method_.execute();
  if (status.ok()) ++inferences_;
  return status;
}

void Session::explain(const Status& status) const {
  error(status);
  if (npu_ == nullptr || status.code != rt::Code::DeviceFault) return;
  const rt::FaultReport& fault = npu_->driver.fault();
  error("NPU status ", Hex{fault.status}, ", command offset ", fault.commandOffset, ", command ",
        Hex{fault.commandWord});
}

void Session::event(EventKind kind, uint32_t, rt::Text name) {
  const uint32_t now = cycleCount();
  switch (kind) {
    case EventKind::ExecuteBegin:
      began_ = now;
      return;
    case EventKind::ExecuteEnd:
      cycles_ += now - began_;
      return;
    case EventKind::KernelBegin:
    case EventKind::DelegateBegin:
      operatorBegan_ = now;
      return;
    case EventKind::KernelEnd:
    case EventKind::DelegateEnd:
      break;
  }
  if (kind == EventKind::DelegateEnd) name = rt::Text("ethos-u", 7);
  for (OperatorTime& time : setup_->times) {
    if (time.name.data != nullptr && time.name.data != name.data) continue;
    time.name = name;
    time.cycles += now - operatorBegan_;
    ++time.calls;
    return;
  }
}

void Session::printOutputs() const {
  for (uint32_t i = 0; i < method_.outputCount(); ++i) {
    const Tensor& tensor = method_.output(i).tensor;
    const size_t count = tensor.elements() < app_.printed ? tensor.elements() : app_.printed;
    for (size_t j = 0; j < count; ++j) {
      put("Output[");
      put(i);
      put("][");
      put(j);
      put("]: ");
      putElement(tensor, j);
      put('\n');
    }
  }
}

void Session::report() const {
  info("NPU Inferences : ", inferences_);
  if (inferences_ == 0) return;
  if (npu_ != nullptr) line("NPU delegations: ", npu_->delegate.jobs(), "", inferences_);
  info("Profiler report, CPU cycles per operator:");
  uint64_t sum = 0;
  for (const OperatorTime& time : setup_->times) {
    if (time.name.data == nullptr) continue;
    sum += time.cycles;
    put("I [carina] ");
    put(time.name);
    put(" : cycle_cnt : ");
    put(time.cycles);
    put(" cycles");
    putPerInference(time.cycles, inferences_);
    put('\n');
  }
  line("Operator(s) total: ", sum, " CPU cycles", inferences_);
  line("Inference runtime: ", cycles_, " CPU cycles total", inferences_);
  info("NOTE: CPU cycle values and ratio calculations require FPGA and identical CPU/NPU frequency");
  if (npu_ != nullptr) reportNpu();
  reportMemory();
}

void Session::reportNpu() const {
  const uint64_t npu = npu_->delegate.cycles();
  percentage("Inference CPU ratio: ", cycles_ > npu ? cycles_ - npu : 0, cycles_);
  percentage("Inference NPU ratio: ", npu < cycles_ ? npu : cycles_, cycles_);
  line("cpu_wait_for_npu_cntr : ", npu_->device.waited(), " CPU cycles", inferences_);
  info("Ethos-U PMU report:");
  line("ethosu_pmu_cycle_cntr : ", npu, "", inferences_);
  const CountedEvents counted = countedEvents(npu_->driver.info().product);
  char name[] = "ethosu_pmu_cntr0 : ";
  for (uint32_t i = 0; i < counted.setup.count; ++i) {
    name[15] = static_cast<char>('0' + i);
    line(name, npu_->delegate.events(i), "", inferences_);
  }
  info("Ethos-U PMU Events:[", counted.names, "]");
}

void Session::reportMemory() const {
  info("model_pte_program_size: ", program_.size(), " bytes");
  info("method_allocator_loaded: ", setup_->memory.method.size, " bytes");
  for (uint32_t i = 0; i < setup_->memory.pools.size; ++i)
    info("method_allocator_planned[", i + 1, "]: ", setup_->memory.pools[i].size, " bytes");
  usage("temp_allocator: ", method_.temporaryHighest(), setup_->memory.temporary.size);
  usage("stack_used: ", stackUsed(), stackBytes());
}

}  // namespace carina::firmware
