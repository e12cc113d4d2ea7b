// SPDX-License-Identifier: Apache-2.0
// The C functions as thin wrappers of the C++ classes, whose objects are constructed in the storage of the C
// structures.
#include <string.h>

#include <new>

#include "carina/carina.h"
#include "carina/ethosu_validator.hpp"
#include "carina/kernels.hpp"
#include "carina/runtime.hpp"

namespace carina::rt {
namespace {

static_assert(static_cast<int>(Code::MapFailed) == CARINA_MAP_FAILED);
static_assert(static_cast<int>(Access::ReadWrite) == CARINA_READ_WRITE);
static_assert(static_cast<int>(EventKind::ExecuteEnd) == CARINA_EXECUTE_END);

carina_status toC(const Status& status) {
  return {static_cast<uint8_t>(status.code), status.nameLength, status.where, status.what, status.name};
}
Status fromC(const carina_status& status) {
  return {static_cast<Code>(status.code), status.name_length, status.where, status.what, status.name};
}

/// A Device implemented by C functions.
class CDevice final : public Device {
 public:
  explicit CDevice(const carina_device& device) : device_(device) {}
  ~CDevice() = default;

  uint32_t read32(uint32_t offset) override { return device_.read32(device_.context, offset); }
  void write32(uint32_t offset, uint32_t value) override { device_.write32(device_.context, offset, value); }
  bool map(const void* host, size_t bytes, Access access, uint64_t* busAddress) override {
    *busAddress = reinterpret_cast<uintptr_t>(host);
    return device_.map == nullptr ||
           device_.map(device_.context, host, bytes, static_cast<carina_access>(access), busAddress) != 0;
  }
  void unmap(const void* host, size_t bytes) override {
    if (device_.unmap != nullptr) device_.unmap(device_.context, host, bytes);
  }
  Wait wait(uint32_t milliseconds) override {
    return device_.wait(device_.context, milliseconds) != 0 ? Wait::Interrupt : Wait::Timeout;
  }
  void clean(const void* data, size_t bytes) override {
    if (device_.clean != nullptr) device_.clean(device_.context, data, bytes);
  }
  void invalidate(void* data, size_t bytes) override {
    if (device_.invalidate != nullptr) device_.invalidate(device_.context, data, bytes);
  }

 private:
  carina_device device_;
};

DriverOptions optionsFrom(const carina_npu_options* from) {
  DriverOptions options;
  if (from == nullptr) return options;
  options.secure = from->secure != 0;
  options.privileged = from->privileged != 0;
  options.timeoutMilliseconds = from->timeout_milliseconds;
  options.hasAttributes = from->has_attributes != 0;
  options.attributes.queue = from->queue;
  memcpy(options.attributes.region, from->region, sizeof(from->region));
  options.validate = reinterpret_cast<decltype(options.validate)>(from->validator);
  return options;
}

struct NpuObject {
  NpuObject(const carina_device& from, const carina_npu_options* options, MutableBytes fastScratch)
      : device(from), driver(device, optionsFrom(options)), delegate(&driver, fastScratch) {}
  CDevice device;
  EthosUDriver driver;
  EthosUDelegate delegate;
};

/// A Profiler implemented by a C function.
class CProfiler final : public Profiler {
 public:
  CProfiler() = default;
  explicit CProfiler(const carina_profiler* to) : to_(to) {}
  ~CProfiler() = default;
  void event(EventKind kind, uint32_t instruction, Text name) override {
    to_->event(to_->context, static_cast<carina_event>(kind), instruction, name.data, name.size);
  }

 private:
  const carina_profiler* to_ = nullptr;
};

constexpr size_t kMaxBackends = 2;  // the NPU's, and one from the caller

/// A method with the objects that it refers to: the list of backends, the profiler.
struct MethodObject {
  Method method;
  Backend* backends[kMaxBackends];
  CProfiler profiler;
};

template <typename Object, typename Storage>
Object* in(Storage* storage) {
  static_assert(sizeof(Object) <= sizeof(Storage));
  static_assert(alignof(Object) <= alignof(Storage));
  return reinterpret_cast<Object*>(storage->storage);
}
template <typename Object, typename Storage>
const Object* in(const Storage* storage) {
  return in<Object>(const_cast<Storage*>(storage));
}

const Program& programOf(const carina_program* program) {
  return *in<Program>(program);
}

class CNamedData final : public NamedData {
 public:
  explicit CNamedData(const carina_named_data* from) : from_(from) {}
  ~CNamedData() = default;
  Status find(Text key, Bytes* bytes) const override {
    const void* data = nullptr;
    size_t size = 0;
    if (from_ == nullptr || from_->find(from_->context, key.data, key.size, &data, &size) != 0)
      return failureNamed(Code::NotFound, "no data of this name were given", key.data, key.size);
    *bytes = Bytes(static_cast<const uint8_t*>(data), size);
    return Status{};
  }

 private:
  const carina_named_data* from_;
};

/// `backends` has kMaxBackends elements; it and `external` must outlive the result.
Environment environmentFrom(const carina_environment& from, const NamedData& external, Backend** backends) {
  Environment environment;
  environment.external = &external;
  environment.kernels = KernelTable(static_cast<const Kernel*>(from.kernels.table), from.kernels.count);
  size_t count = 0;
  if (from.npu != nullptr) backends[count++] = &in<NpuObject>(from.npu)->delegate;
  if (from.backend != nullptr) backends[count++] = reinterpret_cast<Backend*>(from.backend);
  environment.backends = Span<Backend* const>(backends, count);
  if (from.max_instructions != 0) environment.maxInstructions = from.max_instructions;
  return environment;
}

carina_status describe(const Value& value, uint32_t index, carina_tensor* tensor) {
  if (value.kind != ValueKind::Tensor)
    return toC(failure(Code::TypeMismatch, "the input or output is no tensor", index));
  const Tensor& t = value.tensor;
  *tensor = {t.data, t.bytes, t.sizes, t.dimOrder, static_cast<int8_t>(t.type), t.rank};
  return toC(Status{});
}

}  // namespace
}  // namespace carina::rt

using namespace carina::rt;

extern "C" {

size_t carina_status_text(carina_status status, char* text, size_t size) {
  return statusText(fromC(status), text, size);
}

carina_status carina_program_load(carina_program* program, const void* bytes, size_t size) {
  return toC(
      Program::load(Bytes(static_cast<const uint8_t*>(bytes), size), new (in<Program>(program)) Program));
}
uint32_t carina_program_method_count(const carina_program* program) {
  return programOf(program).methodCount();
}
carina_status carina_program_find_method(const carina_program* program, const char* name, uint32_t* index) {
  return toC(programOf(program).findMethod(name, index));
}

carina_validator carina_stream_validator(void) {
  return reinterpret_cast<carina_validator>(&validateStream);
}
carina_status carina_npu_open(carina_npu* npu, const carina_device* device, const carina_npu_options* options,
                              void* fast_scratch, size_t fast_scratch_bytes) {
  const MutableBytes fast(static_cast<uint8_t*>(fast_scratch), fast_scratch_bytes);
  return toC((new (in<NpuObject>(npu)) NpuObject(*device, options, fast))->driver.open());
}
uint64_t carina_npu_cycles(const carina_npu* npu) {
  return in<NpuObject>(npu)->delegate.cycles();
}
uint32_t carina_npu_jobs(const carina_npu* npu) {
  return in<NpuObject>(npu)->delegate.jobs();
}

carina_kernels carina_all_kernels(void) {
  const KernelTable all = allKernels();
  return {all.data, all.size};
}

carina_status carina_method_require(const carina_program* program, uint32_t index,
                                    const carina_environment* environment, carina_requirements* needs) {
  Backend* backends[kMaxBackends] = {};
  Requirements found;
  const CNamedData external(environment->external);
  const Status status =
      Method::require(programOf(program), index, environmentFrom(*environment, external, backends), &found);
  *needs = {found.methodBytes, found.temporaryBytes, found.poolCount};
  return toC(status);
}
carina_status carina_method_pool_bytes(const carina_program* program, uint32_t index, uint32_t pool,
                                       size_t* bytes) {
  return toC(Method::poolBytes(programOf(program), index, pool, bytes));
}

carina_status carina_method_load(carina_method* method, const carina_program* program, uint32_t index,
                                 const carina_environment* environment, const carina_memory* memory) {
  constexpr uint32_t kMaxPools = 16;
  MutableBytes pools[kMaxPools];
  if (memory->pool_count > kMaxPools)
    return toC(
        failure(Code::Unsupported, "the C interface takes at most 16 memory pools", memory->pool_count));
  for (uint32_t i = 0; i < memory->pool_count; ++i)
    pools[i] = MutableBytes(memory->pools[i].data, memory->pools[i].size);
  const Memory given{MutableBytes(memory->method.data, memory->method.size),
                     Span<MutableBytes>(pools, memory->pool_count),
                     MutableBytes(memory->temporary.data, memory->temporary.size)};
  MethodObject* object = new (in<MethodObject>(method)) MethodObject{};
  const CNamedData external(environment->external);
  Environment all = environmentFrom(*environment, external, object->backends);
  if (environment->profiler != nullptr) {
    object->profiler = CProfiler(environment->profiler);
    all.profiler = &object->profiler;
  }
  return toC(object->method.load(programOf(program), index, all, given));
}

uint32_t carina_method_input_count(const carina_method* method) {
  return in<MethodObject>(method)->method.inputCount();
}
uint32_t carina_method_output_count(const carina_method* method) {
  return in<MethodObject>(method)->method.outputCount();
}
carina_status carina_method_input(const carina_method* method, uint32_t index, carina_tensor* tensor) {
  const Method& object = in<MethodObject>(method)->method;
  if (index >= object.inputCount())
    return toC(failure(Code::InvalidArgument, "an input index is out of range", index));
  return describe(object.input(index), index, tensor);
}
carina_status carina_method_output(const carina_method* method, uint32_t index, carina_tensor* tensor) {
  const Method& object = in<MethodObject>(method)->method;
  if (index >= object.outputCount())
    return toC(failure(Code::InvalidArgument, "an output index is out of range", index));
  return describe(object.output(index), index, tensor);
}
carina_status carina_method_output_number(const carina_method* method, uint32_t index,
                                          carina_number* number) {
  const Method& object = in<MethodObject>(method)->method;
  if (index >= object.outputCount())
    return toC(failure(Code::InvalidArgument, "an output index is out of range", index));
  const Value& value = object.output(index);
  switch (value.kind) {
    case ValueKind::Int:
      *number = {CARINA_INTEGER, value.integer, 0};
      break;
    case ValueKind::Double:
      *number = {CARINA_REAL, 0, value.real};
      break;
    case ValueKind::Bool:
      *number = {CARINA_BOOLEAN, value.boolean ? 1 : 0, 0};
      break;
    default:
      return toC(failure(Code::TypeMismatch, "the output is no number", index));
  }
  return toC(Status{});
}
carina_status carina_method_set_input(carina_method* method, uint32_t index, const void* bytes, size_t size) {
  return toC(
      in<MethodObject>(method)->method.setInput(index, Bytes(static_cast<const uint8_t*>(bytes), size)));
}
carina_status carina_method_bind_output(carina_method* method, uint32_t index, void* bytes, size_t size) {
  return toC(
      in<MethodObject>(method)->method.bindOutput(index, MutableBytes(static_cast<uint8_t*>(bytes), size)));
}
carina_status carina_method_execute(carina_method* method) {
  return toC(in<MethodObject>(method)->method.execute());
}
}
