// SPDX-License-Identifier: Apache-2.0
// Random instructions produce the same registers, flags and memory as QEMU's Cortex-M55 (machine mps3-an547).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "machine.hpp"
#include "random_code.hpp"
#include "random_flow.hpp"
#include "support/temp_dir.hpp"

namespace carina::cpu_m {
namespace {

constexpr uint32_t kQemuM55 = kDsp | kFloat | kDouble | kHalf | kV81 | kMve | kMveFloat | kSecurity;

bool qemuIsThere() {
  return std::system("qemu-system-arm --version >/dev/null 2>&1") == 0;
}

/// What the image writes to the console under QEMU.
std::string runInQemu(const RandomImage& image) {
  const test::TempDir folder;
  const std::string file = (folder / "image.elf").string();
  const std::vector<uint8_t> bytes = image.elf();
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const std::string command =
      "timeout 120 qemu-system-arm -M mps3-an547 -nographic -monitor none -serial none -semihosting "
      "-kernel " +
      file + " 2>/dev/null";
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
  pclose(pipe);
  return output;
}

/// Does what the image's handlers do; returns whether the program continues.
bool goesOn(Core& core, const Stop& stop, const RandomImage& image) {
  State& s = core.state;
  switch (stop.reason) {
    case StopReason::SupervisorCall:
      if (image.flowInstructions == 0) {  // RandomOptions::resumed
        s.it = stop.value << 4;
        return true;
      }
      s.r[12] = stop.value;
      if (stop.value == kPrivilegedCall) s.control[s.world] &= ~kControlUnprivileged;
      return true;
    case StopReason::WaitForEvent:
      return core.takeSentEvent();
    case StopReason::WaitForInterrupt:  // one is pending
      return true;
    case StopReason::Breakpoint:
      if (s.pc >= image.end) return false;
      s.r[12] = 0xbe00 | stop.value;
      s.pc += 2;
      return true;
    case StopReason::Undefined:
      s.r[12] = kCfsrUndefined;
      s.pc += isWide(static_cast<uint16_t>(image.code[s.pc - RandomImage::kBase] |
                                           image.code[s.pc - RandomImage::kBase + 1] << 8))
                  ? 4
                  : 2;
      return image.flowInstructions != 0;
    default:
      return false;
  }
}

/// The same from our core; empty if it does not reach the end.
std::string runHere(const RandomImage& image, Stop* stop, uint32_t* pc) {
  const size_t size = (image.code.size() + 0xfff) & ~size_t{0xfff};
  using Bytes = std::unique_ptr<uint8_t, Machine::Free>;
  const Bytes memory(static_cast<uint8_t*>(std::aligned_alloc(4096, size + 0x2000)));
  std::memset(memory.get(), 0, size + 0x2000);
  std::memcpy(memory.get(), image.code.data(), image.code.size());
  Core core(kQemuM55);
  RecordingDevice device;
  core.memory.mapRam(RandomImage::kBase, size, memory.get());
  core.memory.mapRam(0x30000000, 0x1000, memory.get() + size);
  core.memory.mapRam(0x3003f000, 0x1000, memory.get() + size + 0x1000);
  core.memory.mapDevices(0xe0000000, 0x100000);
  core.memory.setDevices(&device);
  core.setCoprocessorAccess(0x00f00000);
  core.setDefaultFpscr(0x00040000);
  core.state.pc = RandomImage::kStart;
  core.state.r[13] = 0x30040000;
  core.changeSau().secureRegions = 0xaaaa;  // those with address bit 28
  do {
    *stop = core.run(uint64_t{1} << 32);
  } while (goesOn(core, *stop, image));
  *pc = core.state.pc;
  if (stop->reason != StopReason::Breakpoint || *pc < image.end) return {};
  return std::string(reinterpret_cast<const char*>(memory.get()) + (image.results - RandomImage::kBase),
                     image.resultBytes);
}

void compare(const RandomImage& image, const std::string& here, const std::string& there) {
  int shown = 0;
  for (const RandomImage::Case& which : image.cases) {
    const size_t at = which.results - image.results;
    if (here.compare(at, RandomImage::kCaseBytes, there, at, RandomImage::kCaseBytes) == 0) continue;
    std::string words;
    for (size_t i = 0; i < RandomImage::kCaseBytes; i += 4) {
      uint32_t a = 0, b = 0;
      std::memcpy(&a, &here[at + i], 4);
      std::memcpy(&b, &there[at + i], 4);
      char line[80];
      std::snprintf(line, sizeof line, "  word %zu: %08x, QEMU %08x\n", i / 4, a, b);
      if (a != b) words += line;
    }
    ADD_FAILURE() << listing(image, which, kQemuM55) << words;
    if (++shown >= 5) return;
  }
}

/// Runs an image here and in QEMU; returns its number of random instructions.
uint64_t expectTheSame(const RandomImage& image, uint32_t seed) {
  Stop stop;
  uint32_t pc = 0;
  const std::string here = runHere(image, &stop, &pc);
  if (here.empty()) {
    for (const RandomImage::Case& which : image.cases) {
      if (pc >= which.begin && pc < which.end) ADD_FAILURE() << listing(image, which, kQemuM55);
    }
    ADD_FAILURE() << "stopped at " << std::hex << pc << ", reason " << static_cast<int>(stop.reason)
                  << ", address " << stop.address;
    return 0;
  }
  const std::string there = runInQemu(image);
  EXPECT_EQ(there.size(), here.size()) << "seed " << seed << ": QEMU did not reach the end";
  if (there.size() != here.size()) return 0;
  compare(image, here, there);
  return image.flowInstructions != 0 ? image.flowInstructions : image.instructions;
}

/// Runs `images` of random code from the rows that `wanted` accepts.
void expectTheSame(const std::function<bool(const CompiledEncoding&)>& wanted, uint32_t features, int images,
                   bool control, bool vectors = false, bool resumed = false) {
  if (!qemuIsThere()) GTEST_SKIP() << "qemu-system-arm is missing (Debian: qemu-system-arm)";
  RandomOptions options;
  options.features = features;
  options.cases = 2000;
  options.wanted = wanted;
  options.control = control;
  options.vectors = vectors;
  options.resumed = resumed;
  for (int seed = 1; seed <= images; ++seed) {
    const RandomImage image = makeRandomImage(static_cast<uint32_t>(seed), options);
    ASSERT_GT(image.instructions, 2000u * 8);
    expectTheSame(image, static_cast<uint32_t>(seed));
    if (testing::Test::HasFailure()) return;
  }
}

bool starts(const CompiledEncoding& row, std::initializer_list<std::string_view> names) {
  const std::string_view text = row.row->text;
  for (const std::string_view name : names) {
    if (text.substr(0, name.size()) == name) return true;
  }
  return false;
}

/// Core instructions except those that end blocks, talk to the system or depend on an exclusive monitor.
bool isInteger(const CompiledEncoding& row) {
  if ((row.row->features & (kFloat | kDouble | kHalf | kMve | kMveFloat)) != 0) return false;
  if (row.wide && (row.value >> 26 & 3) == 3 && row.value >> 29 == 7) return false;  // coprocessors
  return !starts(row, {"strex", "stlex", "wfe", "wfi", "sev", "cps", "msr", "mrs", "bf", "tt", "svc", "isb",
                       "dls", "wls", "le ", "clrex", "hint", "push", "pop"}) ||
         starts(row, {"bfc", "bfi"});
}

TEST(AgainstQemu, IntegerInstructions) {
  expectTheSame(isInteger, kDsp | kV81, 6, true);
}

bool isScalarFloat(const CompiledEncoding& row) {
  return (row.row->features & (kFloat | kDouble | kHalf)) != 0 &&
         (row.row->features & (kMve | kMveFloat)) == 0;
}
/// Except loops.
bool isVector(const CompiledEncoding& row) {
  return (row.row->features & (kMve | kMveFloat)) != 0 && std::string_view(row.row->text).starts_with('v');
}

TEST(AgainstQemu, ScalarFloatingPoint) {
  expectTheSame(isScalarFloat, kFloat | kDouble | kHalf | kV81, 4, false, true);
}
TEST(AgainstQemu, Vectors) {
  expectTheSame(isVector, kQemuM55, 6, false, true);
}
TEST(AgainstQemu, ResumedVectors) {
  expectTheSame(isVector, kQemuM55, 4, false, true, true);
}

// --- group by group

/// Instructions to put between branches.
bool isFiller(const CompiledEncoding& row) {
  const std::span<const Encoding> rows = dataProcessingEncodings();
  return row.row >= rows.data() && row.row < rows.data() + rows.size() && isInteger(row) && !isFlow(row);
}

struct Group {
  const char* name;
  std::span<const Encoding> (*rows)();
  bool flow = false;  // its branches, stops and so on, between other instructions
};
constexpr Group kGroups[] = {
    {"Thumb16", thumb16Encodings},
    {"DataProcessing", dataProcessingEncodings},
    {"LoadStore", loadStoreEncodings},
    {"MultiplyDsp", multiplyDspEncodings},
    {"FloatingPoint", floatingPointEncodings},
    {"FloatingPointTransfer", floatingPointTransferEncodings},
    {"MvePredicate", mvePredicateEncodings},
    {"MveInteger", mveIntegerEncodings},
    {"MveShift", mveShiftEncodings},
    {"MveMove", mveMoveEncodings},
    {"MveReduce", mveReduceEncodings},
    {"MveMemory", mveMemoryEncodings},
    {"MveFloat", mveFloatEncodings},
    {"BranchSystem", branchSystemEncodings, true},
    {"StackAndExclusive", thumb16Encodings, true},
    {"Exclusive", loadStoreEncodings, true},
    {"SecureFloatingPoint", floatingPointTransferEncodings, true},
};

/// Random code of a group; `only` restricts it to rows whose text begins with it.
RandomOptions optionsOf(const Group& group, const char* only, int cases) {
  const std::span<const Encoding> rows = group.rows();
  const bool flow = group.flow;
  const std::string_view name = group.name;
  // Loops without a tail need LTPSIZE 4, which random floating-point state does not have.
  const bool integer = flow || (name.find("Mve") == name.npos && name.find("Float") == name.npos);
  RandomOptions options;
  options.features = kQemuM55;
  options.cases = cases;
  options.wanted = [rows, flow, only](const CompiledEncoding& row) {
    const bool among = row.row >= rows.data() && row.row < rows.data() + rows.size() &&
                       (only == nullptr || starts(row, {only}));
    if (flow) return (among && isFlow(row)) || isFiller(row);
    return among && (isInteger(row) || isScalarFloat(row) || isVector(row));
  };
  options.control = integer;
  options.vectors = !integer;
  options.flow = flow;
  return options;
}

struct AgainstQemuByGroup : testing::TestWithParam<Group> {};

/// Instructions of one group only, so that each occurs often. CARINA_QEMU_INSTRUCTIONS sets how many per
/// group (default: a short run). CARINA_QEMU_ROWS selects the rows whose text begins with it.
TEST_P(AgainstQemuByGroup, IsTheSame) {
  if (!qemuIsThere()) GTEST_SKIP() << "qemu-system-arm is missing (Debian: qemu-system-arm)";
  const char* wanted = std::getenv("CARINA_QEMU_INSTRUCTIONS");
  const uint64_t least = wanted == nullptr ? 0 : std::strtoull(wanted, nullptr, 10);
  const int cases = least == 0 ? 500 : GetParam().flow ? 6000 : 20000;
  const RandomOptions options = optionsOf(GetParam(), std::getenv("CARINA_QEMU_ROWS"), cases);
  uint64_t done = 0;
  for (uint32_t seed = 1000; done <= least && !testing::Test::HasFailure(); ++seed)
    done += expectTheSame(makeRandomImage(seed, options), seed);
  RecordProperty("instructions", std::to_string(done));
}
INSTANTIATE_TEST_SUITE_P(Groups, AgainstQemuByGroup, testing::ValuesIn(kGroups),
                         [](const auto& group) { return group.param.name; });

/// Every row occurs in the code of a group above or is listed here.
TEST(AgainstQemu, EveryRowIsComparedOrListed) {
  // QEMU 7.2 has no pointer authentication. Its instructions in the hint space are compared as hints, as on
  // an M55 ("hint.w"); pacbti_test.cpp tests the rest against the manual.
  const std::set<std::string_view> outside = {"bti",
                                              "pacbti r12, lr, sp",
                                              "pac r12, lr, sp",
                                              "aut r12, lr, sp",
                                              "pacg {Rd}, {Rn}, {Rm}",
                                              "autg {Ra}, {Rn}, {Rm}",
                                              "bxaut {Ra}, {Rn}, {Rm}"};
  std::set<const CompiledEncoding*> compared;
  for (const Group& group : kGroups) {
    const RandomOptions options = optionsOf(group, nullptr, 3000);
    for (uint32_t seed = 1; seed <= 2; ++seed) {
      const RandomImage image = makeRandomImage(seed, options);
      for (const RandomImage::Case& which : image.cases) {
        for (const Listed& one : instructionsOf(image, which)) {
          const CompiledEncoding* row = findEncoding(one.code, one.wide, kQemuM55);
          ASSERT_NE(row, nullptr) << std::hex << one.code;
          compared.insert(row);
        }
      }
    }
  }
  for (const CompiledEncoding& row : allEncodings()) {
    const bool named = outside.contains(row.row->text);
    EXPECT_NE(compared.contains(&row), named) << row.row->text << "  " << row.row->pattern;
  }
}

}  // namespace
}  // namespace carina::cpu_m
