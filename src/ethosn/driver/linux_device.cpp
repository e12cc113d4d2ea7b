// SPDX-License-Identifier: Apache-2.0
#include "ethosn/driver/linux_device.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "ethosn/driver/linux_interface.hpp"
#include "ethosn/model/run.hpp"

namespace carina::ethosn {
namespace {

class LinuxFiles final : public DeviceFiles {
 public:
  int open(const char* path) override { return result(::open(path, O_RDONLY | O_CLOEXEC)); }
  int control(int file, unsigned long request, void* argument) override {
    return result(::ioctl(file, request, argument));
  }
  int map(int file, size_t bytes, void** at) override {
    *at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return *at == MAP_FAILED ? -errno : 0;
  }
  void unmap(void* at, size_t bytes) override { ::munmap(at, bytes); }
  int waitReadable(int file, int milliseconds) override {
    pollfd entry{file, POLLIN, 0};
    return result(::poll(&entry, 1, milliseconds));
  }
  int64_t read(int file, void* into, size_t bytes) override {
    const ssize_t count = ::read(file, into, bytes);
    return count < 0 ? -errno : count;
  }
  void close(int file) override { ::close(file); }

 private:
  static int result(int value) { return value < 0 ? -errno : value; }
};

Error refused(int result, std::string_view what) {
  return fail(Code::NpuFault, "the Ethos-N driver could not {}: {}", what,
              std::strerror(result < 0 ? -result : EIO));
}

/// Memory of the NPU, mapped while the host uses it.
class LinuxBuffer final : public DeviceBuffer {
 public:
  LinuxBuffer(DeviceFiles& files, OwnedFile file, size_t bytes)
      : files_(files), file_(std::move(file)), bytes_(bytes) {}
  size_t size() const override { return bytes_; }
  int file() const { return file_.get(); }

  Status write(ByteSpan bytes) override {
    if (bytes.size() != bytes_)
      return fail(Code::InputMismatch, "{} bytes for a buffer of {}", bytes.size(), bytes_);
    return mapped([&](std::byte* at) { std::memcpy(at, bytes.data(), bytes.size()); });
  }
  Status read(std::span<std::byte> bytes) override {
    if (bytes.size() != bytes_)
      return fail(Code::InputMismatch, "{} bytes from a buffer of {}", bytes.size(), bytes_);
    return mapped([&](const std::byte* at) { std::memcpy(bytes.data(), at, bytes.size()); });
  }

 private:
  template <typename Use>
  Status mapped(Use&& use) {
    void* at = nullptr;
    if (const int result = files_.map(file_.get(), bytes_, &at); result < 0)
      return refused(result, "map a buffer");
    int result = files_.control(file_.get(), kernel::kSyncForCpu, nullptr);
    if (result >= 0) {
      use(static_cast<std::byte*>(at));
      result = files_.control(file_.get(), kernel::kSyncForDevice, nullptr);
    }
    files_.unmap(at, bytes_);
    return result < 0 ? Status(refused(result, "synchronize a buffer")) : Status();
  }

  DeviceFiles& files_;
  OwnedFile file_;
  size_t bytes_;
};

class LinuxInference final : public DeviceInference {
 public:
  LinuxInference(DeviceFiles& files, OwnedFile file) : files_(files), file_(std::move(file)) {}

  Result<InferenceState> wait(std::chrono::milliseconds timeout) override {
    constexpr int64_t kLongest = std::numeric_limits<int>::max();
    const int ready =
        files_.waitReadable(file_.get(), static_cast<int>(std::clamp<int64_t>(timeout.count(), 0, kLongest)));
    if (ready < 0) return refused(ready, "wait for an inference");
    if (ready == 0) return InferenceState::Running;
    int32_t state = 0;
    const int64_t count = files_.read(file_.get(), &state, sizeof(state));
    if (count != sizeof(state)) return refused(static_cast<int>(count), "report the state of an inference");
    if (state < 0 || state > static_cast<int32_t>(InferenceState::Error))
      return fail(Code::NpuFault, "the Ethos-N driver reported the unknown state {} of an inference", state);
    return static_cast<InferenceState>(state);
  }
  Result<uint64_t> cycles() override {
    uint64_t cycles = 0;
    const int result = files_.control(file_.get(), kernel::kCycleCount, &cycles);
    if (result < 0) return refused(result, "report the cycles of an inference");
    return cycles;
  }

 private:
  DeviceFiles& files_;
  OwnedFile file_;
};

class LinuxNetwork final : public DeviceNetwork {
 public:
  LinuxNetwork(DeviceFiles& files, OwnedFile file, const CompiledNetwork& network)
      : files_(files), file_(std::move(file)), network_(network) {}

  Result<std::unique_ptr<DeviceInference>> schedule(std::span<DeviceBuffer* const> inputs,
                                                    std::span<DeviceBuffer* const> outputs) override {
    CARINA_TRY(const std::vector<int> in, filesOf(inputs, network_.inputs, "inputs"));
    CARINA_TRY(const std::vector<int> out, filesOf(outputs, network_.outputs, "outputs"));
    kernel::InferenceRequest request{static_cast<uint32_t>(in.size()), in.data(),
                                     static_cast<uint32_t>(out.size()), out.data()};
    const int file = files_.control(file_.get(), kernel::kScheduleInference, &request);
    if (file < 0) return refused(file, "schedule an inference");
    return std::make_unique<LinuxInference>(files_, OwnedFile(files_, file));
  }

 private:
  static Result<std::vector<int>> filesOf(std::span<DeviceBuffer* const> buffers,
                                          const std::vector<BufferInfo>& infos, std::string_view what) {
    if (buffers.size() != infos.size())
      return fail(Code::InputMismatch, "{} {} for a network with {}", buffers.size(), what, infos.size());
    std::vector<int> files;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const auto* buffer = dynamic_cast<LinuxBuffer*>(buffers[i]);
      if (buffer == nullptr || buffer->size() != infos[i].size) {
        return fail(Code::InputMismatch, "buffer {} of the {} is not a buffer of this device with {} bytes",
                    i, what, infos[i].size);
      }
      files.push_back(buffer->file());
    }
    return files;
  }

  DeviceFiles& files_;
  OwnedFile file_;
  const CompiledNetwork& network_;
};

std::vector<kernel::BufferEntry> entriesOf(const std::vector<BufferInfo>& infos) {
  std::vector<kernel::BufferEntry> entries;
  entries.reserve(infos.size());
  for (const BufferInfo& info : infos) entries.push_back({info.id, info.offset, info.size});
  return entries;
}

kernel::BufferTable tableOf(const std::vector<kernel::BufferEntry>& entries) {
  return {static_cast<uint32_t>(entries.size()), entries.data()};
}

Status checkVersion(DeviceFiles& files, int file, const std::string& path) {
  kernel::ModuleVersion version{};
  const int result = files.control(file, kernel::kGetVersion, &version);
  if (result < 0) return refused(result, "report its version").at(path);
  if (version.major == kernel::kMajor && version.minor == kernel::kMinor) return {};
  return fail(Code::UnknownVersion, "the kernel module of {} has version {}.{}.{}, expected {}.{}", path,
              version.major, version.minor, version.patch, kernel::kMajor, kernel::kMinor)
      .withRemedy("install the kernel module of release 25.03 of Arm's driver stack");
}

/// The variant whose capabilities the firmware reports.
Result<Target> targetOf(DeviceFiles& files, int file, const std::string& path) {
  const int bytes = files.control(file, kernel::kCapabilities, nullptr);
  if (bytes < 0) return refused(bytes, "report the capabilities of the NPU").at(path);
  std::array<uint32_t, 30> words{};
  if (bytes != static_cast<int>(sizeof(words))) {
    return fail(Code::UnknownVersion, "{} describes its NPU in {} bytes, expected {}", path, bytes,
                sizeof(words));
  }
  const int result = files.control(file, kernel::kCapabilities, words.data());
  if (result < 0) return refused(result, "report the capabilities of the NPU").at(path);
  constexpr size_t kSramWord = 6;
  for (const Variant& variant : allVariants()) {
    const auto target = makeTarget(variant, words[kSramWord]);
    if (target && capabilities(*target) == words) return *target;
  }
  return fail(Code::OtherNpu, "{} is not a known variant of Ethos-N78", path);
}

}  // namespace

DeviceFiles& linuxFiles() {
  static LinuxFiles files;
  return files;
}

OwnedFile::OwnedFile(OwnedFile&& other) noexcept
    : files_(other.files_), file_(std::exchange(other.file_, -1)) {}

OwnedFile& OwnedFile::operator=(OwnedFile&& other) noexcept {
  std::swap(files_, other.files_);
  std::swap(file_, other.file_);
  return *this;
}

OwnedFile::~OwnedFile() {
  if (file_ >= 0) files_->close(file_);
}

Result<std::unique_ptr<LinuxDevice>> LinuxDevice::open(DeviceFiles& files, const std::string& path) {
  const int opened = files.open(path.c_str());
  if (opened < 0) {
    return fail(Code::CannotRead, "the NPU cannot be opened: {}", std::strerror(-opened))
        .inFile(path)
        .withRemedy("load the kernel module of Arm's driver stack, or run on the model");
  }
  const OwnedFile file(files, opened);
  CARINA_RETURN_IF_ERROR(checkVersion(files, opened, path));
  CARINA_TRY(const Target target, targetOf(files, opened, path));
  kernel::AllocatorRequest request{0};
  const int allocator = files.control(opened, kernel::kCreateAllocator, &request);
  if (allocator < 0) return refused(allocator, "allocate NPU memory for this process").at(path);
  return std::unique_ptr<LinuxDevice>(new LinuxDevice(files, OwnedFile(files, allocator), target));
}

Result<std::unique_ptr<DeviceBuffer>> LinuxDevice::createBuffer(uint32_t bytes) {
  kernel::BufferRequest request{bytes, kernel::kReadWrite};
  const int file = files_.control(allocator_.get(), kernel::kCreateBuffer, &request);
  if (file < 0) return refused(file, fmt::format("create a buffer of {} bytes", bytes));
  return std::make_unique<LinuxBuffer>(files_, OwnedFile(files_, file), bytes);
}

Result<std::unique_ptr<DeviceNetwork>> LinuxDevice::createNetwork(const CompiledNetwork& network) {
  CARINA_RETURN_IF_ERROR(checkBuffers(network));
  CARINA_TRY(const ByteSpan bytes, commandStreamBytes(network));
  CARINA_TRY(const CommandStream stream, readCommandStream(bytes));
  CARINA_TRY(const Variant* variant, variantOf(stream));
  if (variant != nullptr && variant != target_.variant) {
    return fail(Code::OtherNpu, "the network is for {}, the NPU is {}", variant->name, target_.variant->name)
        .withRemedy(fmt::format("compile it for {}", target_.variant->name));
  }
  const auto dma = entriesOf(network.dmaBuffers), control = entriesOf(network.controlUnitBuffers),
             intermediates = entriesOf(network.intermediates), inputs = entriesOf(network.inputs),
             outputs = entriesOf(network.outputs);
  kernel::NetworkRequest request{};
  request.dmaBuffers = tableOf(dma);
  request.dmaData = {static_cast<uint32_t>(network.constantDma.size()), network.constantDma.data()};
  request.controlUnitBuffers = tableOf(control);
  request.controlUnitData = {static_cast<uint32_t>(network.constantControlUnit.size()),
                             network.constantControlUnit.data()};
  request.intermediate.kind = kernel::MemoryKind::Allocate;
  request.intermediate.bytes = static_cast<uint32_t>(intermediateBytes(network));
  request.intermediate.buffers = tableOf(intermediates);
  request.inputs = tableOf(inputs);
  request.outputs = tableOf(outputs);
  const int file = files_.control(allocator_.get(), kernel::kRegisterNetwork, &request);
  if (file < 0) return refused(file, "accept the network");
  return std::make_unique<LinuxNetwork>(files_, OwnedFile(files_, file), network);
}

}  // namespace carina::ethosn
