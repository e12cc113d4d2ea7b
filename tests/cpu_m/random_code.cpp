// SPDX-License-Identifier: Apache-2.0
#include "random_code.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

#include "code_writer.hpp"
#include "random_flow.hpp"

namespace carina::cpu_m {
namespace {

class Generator : CodeWriter {
 public:
  Generator(uint32_t seed, const RandomOptions& options) : CodeWriter(seed), options_(options) {
    for (const CompiledEncoding& row : allEncodings()) {
      if ((row.row->features & ~options.features) != 0 || !options.wanted(row)) continue;
      (options.flow && isFlow(row) ? flows_ : rows_).push_back(&row);
    }
  }

  RandomImage make() {
    prologue();
    // Results follow the code, whose size is not known yet: reserve generous space for each case.
    const uint32_t perCase =
        160u + (options_.flow ? 320u : 64u) * static_cast<uint32_t>(options_.instructionsPerCase);
    image.results = RandomImage::kStart + 4096 + perCase * static_cast<uint32_t>(options_.cases);
    image.results = (image.results + 63) & ~63u;
    image.resultBytes = RandomImage::kCaseBytes * static_cast<uint32_t>(options_.cases);
    inputs_ = image.results + image.resultBytes;
    for (int i = 0; i < options_.cases; ++i) oneCase(static_cast<uint32_t>(i));
    epilogue();
    image.code.resize(inputs_ - RandomImage::kBase);
    image.code.insert(image.code.end(), inputBytes_.begin(), inputBytes_.end());
    // The memory that a case loads from and stores to is random at first.
    for (int i = 0; i < options_.cases; ++i) {
      const size_t at = image.results - RandomImage::kBase +
                        RandomImage::kCaseBytes * static_cast<size_t>(i) + 4 * RandomImage::kRegisterWords;
      for (uint32_t b = 0; b < RandomImage::kScratch; ++b)
        image.code[at + b] = static_cast<uint8_t>(random());
    }
    return std::move(image);
  }

 private:
  void prologue() {
    // Space before the code, for PC-relative loads.
    image.code.resize(RandomImage::kStart - RandomImage::kBase);
    for (uint8_t& byte : image.code) byte = static_cast<uint8_t>(random());
    const uint32_t start = RandomImage::kStart | 1;
    // On any fault: exit by semihosting (at 0x10000080) without writing anything.
    const uint32_t handler = RandomImage::kVectors + 0x80;
    image.vectors.resize(0xb0);
    for (uint32_t i = 0; i < 16; ++i)
      store(image.vectors, 4 * i, i == 0 ? 0x30040000 : i == 1 ? start : handler | 1);
    const uint16_t exit[] = {0x2018, 0x2100, 0xbeab};  // movs r0, #SYS_EXIT; movs r1, #0; bkpt 0xab
    std::memcpy(&image.vectors[0x80], exit, sizeof exit);
    if (options_.flow) {
      writeFlowHandlers(image);
      writeTrampolines(*this);
    }
    if (options_.resumed) {
      // The SVC handler: the SVC number becomes the ECI (XPSR 15:12) of the resumed program.
      store(image.vectors, 4 * 11, (RandomImage::kVectors + 0x90) | 1);
      // ldr r0, [sp, #24]; ldrb r0, [r0, #-2]; lsls r0, r0, #12; ldr r1, [sp, #28]; orrs r1, r0; str r1, [sp,
      // #28]
      const uint16_t resume[] = {0x9806, 0xf810, 0x0c02, 0x0300, 0x9907, 0x4301, 0x9107, 0x4770};
      std::memcpy(&image.vectors[0x90], resume, sizeof resume);
    }
    constant(0, 0xe000ed88);  // CPACR: floating point on
    constant(1, 0x00f00000);
    wide(0xf8c01000);  // str r1, [r0]
    if (options_.flow) {
      constant(0, 0xe000ed24);  // SHCSR: enables UsageFault as a separate exception
      constant(1, 1u << 18);
      wide(0xf8c01000);
    }
    wide(0xf3bf8f4f);
    wide(0xf3bf8f6f);
  }
  static void store(std::vector<uint8_t>& bytes, size_t at, uint32_t value) {
    std::memcpy(&bytes[at], &value, 4);
  }

  /// Random values, some of them special.
  uint32_t operand() {
    constexpr uint32_t kSpecial[] = {0,          1,          2,          0x7f,       0x80,
                                     0xff,       0x7fff,     0x8000,     0xffff,     0x7fffffff,
                                     0x80000000, 0xffffffff, 0x80008000, 0x7fff7fff, 0x80808080,
                                     0x00010001, 31,         32,         33,         64};
    return pick(4) == 0 ? kSpecial[pick(std::size(kSpecial))] : word();
  }

  /// Puts floating-point numbers of all formats into registers; sets FPSCR and VPR.
  void vectorInputs(std::vector<uint8_t>& bytes) {
    constexpr uint32_t kFloats[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
                                    0x7fc00000, 0x7f800001, 0xffc12345, 0x00000001, 0x807fffff, 0x00800000,
                                    0x7f7fffff, 0x3c003c00, 0x7c00fc00, 0x7e007d01, 0x00010400, 0x03ff8001,
                                    0x7ff00000, 0x7ff80000, 0x00100000, 0x3ff00000, 0x4f000000, 0xcf000001};
    for (uint32_t i = 14; i < 46; ++i) {
      const uint32_t kind = pick(6);
      uint32_t value = operand();
      if (kind == 0) value = kFloats[pick(std::size(kFloats))];
      if (kind == 1) value = (value & 0x807fffff) | (118 + pick(20)) << 23;  // singles near 1
      if (kind == 2) value = (value & 0x83ff83ff) | (12 + pick(6)) << 26 | (12 + pick(6)) << 10;  // halves
      if (kind == 3) value = (value & 0x800fffff) | (1018 + pick(10)) << 20;                      // doubles
      store(bytes, 4 * i, value);
    }
    uint32_t fpscr = word() & 0xf8080000;
    if (pick(2) != 0) fpscr |= word() & 0x07c00000;
    fpscr |= (pick(3) == 0 ? pick(5) : 4) << 16;
    store(bytes, 4 * 46, fpscr);
    const uint32_t masks = pick(3) == 0   ? word() & 0x00ff0000
                           : pick(2) == 0 ? (1 + pick(15)) * 0x00110000
                                          : 0;
    store(bytes, 4 * 47, masks | (word() & 0xffff));
  }

  void oneCase(uint32_t number) {
    const bool fp = (options_.features & kFloat) != 0;
    const uint32_t input = inputs_ + static_cast<uint32_t>(inputBytes_.size());
    std::vector<uint8_t> bytes(4 * RandomImage::kRegisterWords);
    for (uint32_t i = 0; i < RandomImage::kRegisterWords; ++i) store(bytes, 4 * i, operand());
    store(bytes, 4 * 13, word() & 0xf80f0000);  // APSR
    store(bytes, 4 * 46, 0x00040000 | (word() & 0xf0000000));
    store(bytes, 4 * 47, 0);
    if (options_.vectors) vectorInputs(bytes);
    inputBytes_.insert(inputBytes_.end(), bytes.begin(), bytes.end());
    scratch_ = image.results + RandomImage::kCaseBytes * number + 4 * RandomImage::kRegisterWords;

    constant(kLr, input);
    if (fp) {
      wide(0xf8de00b8);  // ldr r0, [lr, #184]
      wide(0xeee10a10);  // vmsr fpscr, r0
      wide(0xf10e0038);  // add r0, lr, #56
      wide(0xec900b20);  // vldmia r0, {d0-d15}
    }
    wide(0xf8de0034);  // ldr r0, [lr, #52]
    wide(0xf3808c00);  // msr apsr_nzcvqg, r0
    const bool predicates = options_.vectors && (options_.features & kMve) != 0;
    if (predicates) {
      wide(0xf8de00bc);  // ldr r0, [lr, #188]
      wide(0xeeec0a10);  // vmsr vpr, r0
    }
    wide(0xe89e1fff);                                    // ldmia lr, {r0-r12}
    if (predicates) movHalf(0xf2400000, kLr, pick(20));  // remaining count of a loop
    RandomImage::Case which;
    which.begin = here();
    which.results = scratch_ - 4 * RandomImage::kRegisterWords;
    for (int i = 0; i < options_.instructionsPerCase; ++i) step();
    if (resumesNext_) {  // a vector instruction to resume: vmov q0, q0
      wide(0xef200150);
      resumesNext_ = false;
    }
    which.end = here();
    image.cases.push_back(which);
    constant(kLr, which.results);
    wide(0xe88e1fff);  // stmia lr, {r0-r12}
    wide(0xf3ef8000);  // mrs r0, apsr
    wide(0xf8ce0034);  // str r0, [lr, #52]
    if (fp) {
      wide(0xeef10a10);  // vmrs r0, fpscr
      wide(0xf8ce00b8);  // str r0, [lr, #184]
      wide(0xf10e0038);
      wide(0xec800b20);  // vstmia r0, {d0-d15}
    }
    if ((options_.features & kMve) != 0) {
      wide(0xeefc0a10);  // vmrs r0, vpr
      wide(0xf8ce00bc);  // str r0, [lr, #188]
    }
  }

  void step() {
    if (options_.vectors && !options_.resumed && (options_.features & kMve) != 0 && pick(8) == 0) {
      vectorLoop();
      return;
    }
    if (!flows_.empty() && pick(4) != 0) {
      const CompiledEncoding& row = *flows_[pick(static_cast<uint32_t>(flows_.size()))];
      writeFlow({*this, options_.features, scratch_, [this] { instruction(0); }}, row);
      return;
    }
    switch (options_.control ? pick(12) : 11) {
      case 0:
        itBlock();
        break;
      case 1:
        skip();
        break;
      case 2:
        loop();
        break;
      default:
        instruction(0);
        break;
    }
  }

  struct Chosen {
    uint32_t code;
    bool wide;
    Op op;
    const CompiledEncoding* row;
  };
  std::optional<Chosen> choose(uint8_t it) {
    const CompiledEncoding& row = *rows_[pick(static_cast<uint32_t>(rows_.size()))];
    for (int tries = 0; tries < 200; ++tries) {
      Chosen chosen{(word() & ~row.mask) | row.value, row.wide, {}, &row};
      if (!row.wide) chosen.code &= 0xffff;
      if (findEncoding(chosen.code, row.wide, options_.features) != &row) continue;
      Op& op = chosen.op;
      op.code = chosen.code;
      op.address = here();
      op.size = row.wide ? 4 : 2;
      DecodeContext context;
      context.features = options_.features;
      context.inIt = it != 0;
      context.lastInIt = (it & 15) == 8;
      if (decodeInto(op, row, context) != Decoded::Ok) continue;
      if (context.branches || context.readsPc || context.startsIt != 0) continue;
      // The stack pointer must not change.
      if (op.d == kSp || op.n == kSp || op.m == kSp || op.a == kSp) continue;
      return chosen;
    }
    return std::nullopt;
  }

  static bool has(const Chosen& chosen, std::string_view part) {
    return std::string_view(chosen.row->row->text).find(part) != std::string_view::npos;
  }

  /// Returns false, and emits nothing, if none was found.
  bool instruction(uint8_t it) {
    const auto chosen = choose(it);
    if (!chosen) return false;
    const Op& op = chosen->op;
    if ((chosen->row->row->features & (kFloat | kHalf | kMve)) != 0 || chosen->code >> 24 == 0xec) {
      if (resumesNext_) {
        // The preceding instruction has left one beat of the next one done.
        wide(0xef200150);
        resumesNext_ = false;
      }
      if (!prepareVector(*chosen)) return false;
      if (options_.resumed && chosen->row->beats && pick(4) != 0) {
        constexpr uint8_t kEci[] = {1, 2, 4, 5};
        const uint8_t eci = kEci[pick(4)];
        half(0xdf00u | eci);
        resumesNext_ = eci == 5;
      }
      emit(*chosen);
      return true;
    }
    const bool memory = has(*chosen, "[{Rn}") || has(*chosen, "{list}");
    const bool loadsClrm = has(*chosen, "clrm");
    if (memory && !loadsClrm) {
      // Base registers that reach the scratch memory; no lists with SP, LR or PC.
      if (it != 0 || op.n >= kSp) return false;
      if (has(*chosen, "{list}") && (op.imm & 0xe000) != 0) return false;
      if (has(*chosen, "{Rm}") && (op.m == op.n || op.m >= kSp)) return false;
      constant(op.n, scratch_ + RandomImage::kScratch / 2 - offsetOf(*chosen));
      image.instructions += 2;
      if (has(*chosen, "{Rm}")) {
        movHalf(0xf2400000, op.m, pick(8));
        ++image.instructions;
      }
    }
    if (has(*chosen, "sat {x}")) {
      // Shifts to 48 bits by more than 48: QEMU treats the rest of the 64 bits as 0, the manual does not.
      if (it != 0) return false;
      movHalf(0xf2400000, op.m, (pick(96) - 48) & 0xff);
      ++image.instructions;
    }
    if (loadsClrm && (op.imm & 0x2000) != 0) return false;
    emit(*chosen);
    return true;
  }
  static bool begins(const Chosen& chosen, std::initializer_list<std::string_view> names) {
    const std::string_view text = chosen.row->row->text;
    return std::any_of(names.begin(), names.end(),
                       [text](std::string_view name) { return text.starts_with(name); });
  }

  /// Prepares addresses of floating-point and vector loads and stores. Returns false if the result would be
  /// UNPREDICTABLE.
  bool prepareVector(const Chosen& chosen) {
    const Op& op = chosen.op;
    // 32-bit (complex: all) elements whose result must not overlap an operand.
    if ((op.d == op.m || op.d == op.n) &&
        begins(chosen, {"vmull", "vqdmull", "vqdmla", "vqrdmla", "vqdmls", "vqrdmls", "vcadd", "vhcadd",
                        "vcmul", "vcmla", "vrev64"})) {
      return false;
    }
    const uint32_t middle = scratch_ + RandomImage::kScratch / 2;
    if (has(chosen, "vpr") && begins(chosen, {"vmsr", "vldr"})) {
      // Bits 31:24 are RES0: QEMU keeps what is written there.
      if (begins(chosen, {"vmsr"}) && op.d >= kSp) return false;
      const bool moves = begins(chosen, {"vmsr"});
      constant(moves ? op.d : 4, word() & 0x00ffffff);
      if (!moves) {
        constant(5, middle);
        half(0x602c);  // str r4, [r5]
      }
      image.instructions += 5;
    }
    if (has(chosen, "[q{n}")) {  // addresses in a vector
      for (uint32_t i = 0; i < 2; ++i) {
        constant(4, middle - op.imm + 8 * pick(4));
        constant(5, middle - op.imm + 4 * pick(8));
        moveToDouble(2u * op.n + i, 4, 5);
      }
      image.instructions += 10;
    } else if (has(chosen, "q{m}, uxtw")) {
      if (op.n >= kSp) return false;
      for (uint32_t i = 0; i < 2; ++i) {
        constant(4, offsets(chosen));
        constant(5, offsets(chosen));
        moveToDouble(2u * op.m + i, 4, 5);
      }
      constant(op.n, scratch_);
      image.instructions += 12;
    } else if (begins(chosen, {"vldm", "vstm"}) || has(chosen, "[{Rn}") || has(chosen, "{mem}")) {
      if (op.n >= kSp) return false;
      const bool several = begins(chosen, {"vldm", "vstm"});
      const bool interleaves = begins(chosen, {"vld2", "vld4", "vst2", "vst4"});
      const bool indexed = !has(chosen, "{mem}") || op.x != 0;
      constant(op.n, several       ? (op.x != 0 ? middle : scratch_)
                     : interleaves ? scratch_ + 16 * pick(4)
                     : indexed     ? middle - op.imm
                                   : middle);
      image.instructions += 2;
    }
    return true;
  }
  /// A word of offsets below 128 for the lane and access sizes of a gather or scatter.
  uint32_t offsets(const Chosen& chosen) {
    const uint32_t lane = chosen.code >> 7 & 3, memory = (chosen.code >> 5 & 2) | (chosen.code >> 4 & 1);
    const bool scaled = chosen.op.x != 0;
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < 4; i += 1u << std::min(lane, 2u)) {
      const uint32_t element = pick(120u >> memory);
      lanes |= (scaled ? element : element << memory) << 8 * i;
    }
    return lanes;
  }
  /// The offset that an instruction adds to its base, so that the access is near the middle of the scratch
  /// memory.
  uint32_t offsetOf(const Chosen& chosen) {
    const bool list = has(chosen, "{list}");
    // Some need alignment: keep the low bits of the sum clear, or random where any alignment is allowed.
    const uint32_t aligned = (list ? 0 : chosen.op.imm) & ~3u;
    const bool any = has(chosen, "ldr") && !has(chosen, "ldrd") && !has(chosen, "ldrex");
    return any && pick(3) == 0 ? aligned + pick(4) : chosen.op.imm & (list ? 0 : ~0u);
  }
  void emit(const Chosen& chosen) {
    if (chosen.wide) {
      wide(chosen.code);
    } else {
      half(chosen.code);
    }
    ++image.instructions;
  }

  void itBlock() {
    const uint32_t condition = pick(14), length = 1 + pick(4);
    // The mask: low bits of the conditions of the others, then a one.
    const uint32_t mask = ((word() << (5 - length)) | 1u << (4 - length)) & 15;
    const uint8_t state = static_cast<uint8_t>(condition << 4 | mask);
    const size_t before = image.code.size();
    half(0xbf00 | state);
    ++image.instructions;
    uint8_t it = state;
    for (uint32_t i = 0; i < length; ++i) {
      int tries = 0;
      while (!instruction(it)) {
        if (++tries > 100) {
          image.code.resize(before);  // cannot happen with any useful choice of rows
          return;
        }
      }
      it = (it & 7) == 0 ? uint8_t{0} : static_cast<uint8_t>((it & 0xe0) | (it << 1 & 0x1f));
    }
  }

  /// A forward branch over a few instructions.
  void skip() {
    const size_t at = image.code.size();
    const uint32_t kind = pick(4);
    half(0);
    if (kind >= 2) half(0);
    instruction(0);
    instruction(0);
    half(0xbf00);  // NOP: forward at least that far
    const auto offset = static_cast<uint32_t>(image.code.size() - at - 4);
    std::vector<uint8_t> tail(image.code.begin() + static_cast<ptrdiff_t>(at) + (kind >= 2 ? 4 : 2),
                              image.code.end());
    image.code.resize(at);
    const uint32_t reg = pick(8);
    // Code with constants can be longer than CBZ reaches; it is short enough here.
    if (kind == 0) half(0xd000 | pick(14) << 8 | (offset >> 1 & 0xff));
    if (kind == 1)
      half((pick(2) != 0 ? 0xb900 : 0xb100) | (offset >> 6 & 1) << 9 | (offset >> 1 & 31) << 3 | reg);
    if (kind == 2) wide(0xf0008000 | pick(14) << 22 | (offset >> 1 & 0x7ff));
    if (kind == 3) wide(0xf000b800 | (offset >> 1 & 0x7ff));
    image.code.insert(image.code.end(), tail.begin(), tail.end());
    ++image.instructions;
  }

  /// WLSTP or DLSTP, a body, LETP: the vectors of the last iteration are not full.
  void vectorLoop() {
    const uint32_t reg = pick(13), size = pick(4);
    movHalf(0xf2400000, reg, pick(40));
    const bool whiles = pick(2) != 0;
    const size_t start = image.code.size();
    wide(0xf000e001 | size << 20 | reg << 16);  // dlstp lr, reg
    const size_t body = image.code.size();
    for (int i = 0; i < 3; ++i) {
      const auto chosen = choose(0);
      if (!chosen) continue;
      const Op& op = chosen->op;
      // Nothing that changes the loop counter, and no blocks that continue into the next iteration.
      if (op.d == kLr || op.n == kLr || op.m == kLr || op.a == kLr || op.z == kLr) continue;
      if (has(*chosen, "[") || has(*chosen, "{mem}") || has(*chosen, "fpscr") || has(*chosen, "vpr"))
        continue;
      if (begins(*chosen, {"vldm", "vstm", "vp{vpt}", "vps{vpt}", "vscclrm"})) continue;
      if (!prepareVector(*chosen)) continue;
      emit(*chosen);
    }
    const auto back = static_cast<uint32_t>(image.code.size() + 4 - body);
    wide(0xf01fc001 | (back >> 1 & 1) << 11 | back >> 2 << 1);
    if (whiles) {
      const auto out = static_cast<uint32_t>(image.code.size() - start - 4);
      const uint32_t code = 0xf000c001 | size << 20 | reg << 16 | (out >> 1 & 1) << 11 | out >> 2 << 1;
      image.code[start] = static_cast<uint8_t>(code >> 16);
      image.code[start + 1] = static_cast<uint8_t>(code >> 24);
      image.code[start + 2] = static_cast<uint8_t>(code);
      image.code[start + 3] = static_cast<uint8_t>(code >> 8);
    }
    image.instructions += 3;
  }

  /// WLS or DLS with a count of at most 5, a body, LE.
  void loop() {
    if ((options_.features & kV81) == 0) return;
    const uint32_t reg = pick(13);
    movHalf(0xf2400000, reg, pick(6));
    const bool whiles = pick(2) != 0;
    const size_t start = image.code.size();
    wide(0xf040e001 | reg << 16);  // dls lr, reg
    const size_t body = image.code.size();
    // The body must not touch LR.
    for (int i = 0; i < 2; ++i) {
      const size_t before = image.code.size();
      const uint64_t counted = image.instructions;
      if (const auto chosen = choose(0); chosen && chosen->op.d != kLr && chosen->op.a != kLr &&
                                         !has(*chosen, "[{Rn}") && !has(*chosen, "{list}") &&
                                         !has(*chosen, "sat {x}")) {
        emit(*chosen);
      } else {
        image.code.resize(before);
        image.instructions = counted;
      }
    }
    const auto back = static_cast<uint32_t>(image.code.size() + 4 - body);
    wide(0xf00fc001 | (back >> 1 & 1) << 11 | back >> 2 << 1);
    if (whiles) {
      const auto out = static_cast<uint32_t>(image.code.size() - start - 4);
      const uint32_t code = 0xf040c001 | reg << 16 | (out >> 1 & 1) << 11 | out >> 2 << 1;
      image.code[start] = static_cast<uint8_t>(code >> 16);
      image.code[start + 1] = static_cast<uint8_t>(code >> 24);
      image.code[start + 2] = static_cast<uint8_t>(code);
      image.code[start + 3] = static_cast<uint8_t>(code >> 8);
    }
    image.instructions += 3;
  }

  /// Opens the console, writes the results there, exits.
  void epilogue() {
    image.end = here();
    const uint32_t block = 0x30000000;  // for the arguments, in data memory
    constant(5, block);
    constant(0, 0x0074743a);  // ":tt"
    half(0x6128);             // str r0, [r5, #16]
    constant(0, block + 16);
    half(0x6028);  // str r0, [r5]
    half(0x2004);  // movs r0, #4 (for writing)
    half(0x6068);
    half(0x2003);
    half(0x60a8);
    half(0x2001);  // SYS_OPEN
    half(0x4629);
    half(0xbeab);
    half(0x6028);
    constant(0, image.results);
    half(0x6068);
    constant(0, image.resultBytes);
    half(0x60a8);
    half(0x2005);  // SYS_WRITE
    half(0x4629);
    half(0xbeab);
    half(0x2018);  // SYS_EXIT
    constant(1, 0x20026);
    half(0xbeab);
  }

  bool resumesNext_ = false;  // one beat of the next vector instruction counts as done
  const RandomOptions& options_;
  std::vector<const CompiledEncoding*> rows_, flows_;
  uint32_t inputs_ = 0, scratch_ = 0;
  std::vector<uint8_t> inputBytes_;
};

void append(std::vector<uint8_t>& bytes, std::initializer_list<uint32_t> words) {
  for (const uint32_t word : words) {
    for (uint32_t i = 0; i < 4; ++i) bytes.push_back(static_cast<uint8_t>(word >> 8 * i));
  }
}

}  // namespace

RandomImage makeRandomImage(uint32_t seed, const RandomOptions& options) {
  return Generator(seed, options).make();
}

std::vector<uint8_t> RandomImage::elf() const {
  std::vector<uint8_t> file = {0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const uint32_t header = 52, program = 32, first = header + 2 * program;
  const auto vectorBytes = static_cast<uint32_t>(vectors.size()),
             codeBytes = static_cast<uint32_t>(code.size());
  append(file, {2u | 40u << 16, 1, kStart | 1, header, 0, 0x05000000, header | program << 16, 2, 0});
  append(file, {1, first, kVectors, kVectors, vectorBytes, vectorBytes, 7, 4});
  append(file, {1, first + vectorBytes, kBase, kBase, codeBytes, codeBytes, 7, 4});
  file.insert(file.end(), vectors.begin(), vectors.end());
  file.insert(file.end(), code.begin(), code.end());
  return file;
}

std::vector<Listed> instructionsOf(const RandomImage& image, const RandomImage::Case& which) {
  std::vector<Listed> result;
  for (uint32_t at = which.begin; at < which.end;) {
    const auto data = std::find_if(image.data.begin(), image.data.end(),
                                   [at](const auto& range) { return at >= range.begin && at < range.end; });
    if (data != image.data.end()) {
      at = data->end;
      continue;
    }
    const uint8_t* bytes = &image.code[at - RandomImage::kBase];
    const auto first = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
    const bool wide = isWide(first);
    const uint32_t code =
        wide ? uint32_t{first} << 16 | bytes[2] | static_cast<uint32_t>(bytes[3]) << 8 : first;
    result.push_back({at, code, wide});
    at += wide ? 4 : 2;
  }
  return result;
}

std::string listing(const RandomImage& image, const RandomImage::Case& which, uint32_t features) {
  std::string text;
  for (const Listed& one : instructionsOf(image, which)) {
    char line[48];
    std::snprintf(line, sizeof line, one.wide ? "  %08x: %08x  " : "  %08x: %04x      ", one.address,
                  one.code);
    text += line + disassemble(one.code, one.wide, one.address, features) + "\n";
  }
  return text;
}

}  // namespace carina::cpu_m
