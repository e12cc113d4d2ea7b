// SPDX-License-Identifier: Apache-2.0
// The rules: where instructions execute, for how long, and when their results are available.
//
// Sources: Arm's Technical Reference Manuals of Cortex-M33, M55 and M85 (stages, dual issue, exception
// latency); Arm's machine descriptions in LLVM (ARMScheduleM55.td, ARMScheduleM85.td: pipes, latencies, two
// beats per instruction and pipe, what pairs); the public timing table of Cortex-M4, whose integer pipeline
// M33 inherits. Divisions take the middle of the range given there. For a comparison of CoreMark with
// published scores, see docs/platform.md.
#include "cpu_m/pipeline.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.hpp"

namespace carina::cpu_m {
namespace {

enum Unit : uint8_t {
  kNowhere,  // is only issued
  kAlu,
  kMac,
  kDivider,
  kLoad,
  kStore,
  kBranch,
  kSystem,
  kVectorMemory,
  kVectorInteger,
  kVectorMultiply,  // also all floating point
  kVectorControl,
};

/// The instructions that a rule is for.
enum class Kind : uint8_t { Scalar, Float, Vector };

/// Cycles on M33, M55 and M85.
struct PerCore {
  uint8_t m33, m55, m85;
  constexpr uint32_t of(Pipeline pipeline) const {
    return pipeline == Pipeline::M33 ? m33 : pipeline == Pipeline::M55 ? m55 : m85;
  }
};

enum Flag : uint8_t {
  kPerWord = 1,   // `occupies` is the number of words moved per cycle
  kBlocks = 2,    // nothing else starts before the result is available
  kSingle = 4,    // never one of a pair
  kEasy = 8,      // as a 16-bit instruction, pairs with any other 16-bit one (M33, M55)
  kNoResult = 16  // the first operand is read, not written
};

struct Rule {
  Kind kind;
  const char* names;  // separated by spaces; one that ends in * is a prefix
  Unit unit;
  PerCore occupies;  // cycles for which the unit accepts nothing else
  PerCore latency;   // from the start until a dependent instruction can start
  uint8_t flags = 0;
};

// The first matching rule applies.
constexpr Rule kRules[] = {
    // clang-format off
    {Kind::Scalar, "it nop yield hint pld sev bti",         kNowhere, {1, 1, 0}, {1, 1, 0}, kEasy | kNoResult},
    {Kind::Scalar, "ldm* pop",                              kLoad,    {1, 2, 2}, {1, 2, 2}, kPerWord | kSingle | kNoResult},
    {Kind::Scalar, "stm* push",                             kStore,   {1, 2, 2}, {1, 1, 1}, kPerWord | kSingle | kNoResult},
    {Kind::Scalar, "clrm",                                  kAlu,     {1, 2, 2}, {1, 1, 1}, kPerWord | kSingle | kNoResult},
    {Kind::Scalar, "ldrd",                                  kLoad,    {2, 1, 1}, {2, 2, 1}},
    {Kind::Scalar, "ldrex* ldaex* lda*",                    kLoad,    {1, 1, 1}, {2, 2, 2}, kSingle},
    {Kind::Scalar, "ldrb ldrh ldrsb ldrsh",                 kLoad,    {1, 1, 1}, {2, 2, 2}},
    {Kind::Scalar, "ldr*",                                  kLoad,    {1, 1, 1}, {2, 2, 1}},
    {Kind::Scalar, "strd",                                  kStore,   {2, 1, 1}, {1, 1, 1}, kNoResult},
    {Kind::Scalar, "strex* stlex*",                         kStore,   {1, 1, 1}, {2, 2, 2}, kSingle},
    {Kind::Scalar, "str* stl*",                             kStore,   {1, 1, 1}, {1, 1, 1}, kNoResult},
    {Kind::Scalar, "tbb tbh",                               kLoad,    {2, 2, 2}, {2, 2, 2}, kSingle | kNoResult},
    {Kind::Scalar, "sdiv udiv",                             kDivider, {6, 6, 7}, {6, 6, 7}, kBlocks},
    {Kind::Scalar, "mul* mla* mls* sml* smm* smu* uml* umaal umull* smus* usad*", kMac, {1, 1, 1}, {1, 2, 2}},
    {Kind::Scalar, "cbz cbnz",                              kBranch,  {1, 1, 1}, {1, 1, 1}, kNoResult},
    {Kind::Scalar, "bfc bfi bfx bf sbfx ubfx ssat* usat* q* uq* sadd* ssub* sasx ssax shadd* uhadd* sel", kAlu, {1, 1, 1}, {1, 2, 1}},
    {Kind::Scalar, "asrl lsll lsrl sqrshr* sqshl* srshr* uqrshl* uqshl* urshr*", kAlu, {1, 1, 1}, {1, 2, 2}},
    {Kind::Scalar, "csel csinc csinv csneg",                kAlu,     {1, 1, 1}, {1, 1, 2}, kSingle},
    {Kind::Scalar, "bic bics",                              kAlu,     {1, 1, 1}, {1, 1, 1}},
    {Kind::Scalar, "bkpt udf",                              kSystem,  {1, 1, 1}, {1, 1, 1}, kSingle | kNoResult},
    {Kind::Scalar, "le letp",                               kBranch,  {0, 0, 0}, {0, 0, 0}, kNoResult | kEasy},
    {Kind::Scalar, "dls* wls* lctp",                        kBranch,  {1, 1, 1}, {1, 1, 1}, kSingle | kNoResult},
    {Kind::Scalar, "b* svc",                                kBranch,  {1, 1, 1}, {1, 1, 1}, kEasy | kNoResult},
    {Kind::Scalar, "isb",                                   kSystem,  {3, 4, 7}, {3, 4, 7}, kBlocks | kSingle | kNoResult},
    {Kind::Scalar, "dsb dmb",                               kSystem,  {1, 2, 3}, {1, 2, 3}, kBlocks | kSingle | kNoResult},
    {Kind::Scalar, "mrs msr cps tt* sg clrex wfe wfi",      kSystem,  {1, 1, 3}, {1, 1, 3}, kSingle},
    {Kind::Scalar, "cmp* cmn* tst* teq*",                   kAlu,     {1, 1, 1}, {1, 1, 1}, kNoResult},
    {Kind::Scalar, "uxtb uxth sxtb sxth mov movs",          kAlu,     {1, 1, 1}, {1, 1, 1}, kEasy},
    {Kind::Scalar, "*",                                     kAlu,     {1, 1, 1}, {1, 1, 1}},

    {Kind::Float, "vldm*",                                  kVectorMemory, {1, 2, 2}, {1, 2, 2}, kPerWord | kSingle | kNoResult},
    {Kind::Float, "vstm* vscclrm vlstm vlldm",              kVectorMemory, {1, 2, 2}, {1, 1, 1}, kPerWord | kSingle | kNoResult},
    {Kind::Float, "vldr*",                                  kVectorMemory, {1, 1, 1}, {2, 2, 2}},
    {Kind::Float, "vstr*",                                  kVectorMemory, {1, 1, 1}, {1, 1, 1}, kNoResult},
    {Kind::Float, "vdiv.f16 vsqrt.f16",                     kVectorMultiply, {9, 9, 8}, {9, 9, 8}, kBlocks},
    {Kind::Float, "vdiv.f64 vsqrt.f64",                     kVectorMultiply, {30, 30, 29}, {30, 30, 29}, kBlocks},
    {Kind::Float, "vdiv* vsqrt*",                           kVectorMultiply, {14, 16, 14}, {14, 16, 14}, kBlocks},
    {Kind::Float, "vfma.f64 vfms.f64 vfnma.f64 vfnms.f64",  kVectorMultiply, {24, 24, 14}, {24, 24, 14}, kBlocks},
    {Kind::Float, "vmla.f64 vmls.f64 vnmla.f64 vnmls.f64",  kVectorMultiply, {36, 36, 14}, {36, 36, 14}, kBlocks},
    {Kind::Float, "vmul.f64 vnmul.f64",                     kVectorMultiply, {21, 21, 8}, {21, 21, 8}, kBlocks},
    {Kind::Float, "vadd.f64 vsub.f64",                      kVectorMultiply, {15, 15, 6}, {15, 15, 6}, kBlocks},
    {Kind::Float, "vmla* vmls* vnmla* vnmls*",              kVectorMultiply, {3, 1, 1}, {3, 4, 5}},
    {Kind::Float, "vfma* vfms* vfnma* vfnms*",              kVectorMultiply, {3, 1, 1}, {3, 2, 4}},
    {Kind::Float, "vmul* vnmul*",                           kVectorMultiply, {1, 1, 1}, {2, 2, 3}},
    {Kind::Float, "vcmp*",                                  kVectorMultiply, {1, 1, 1}, {1, 1, 1}, kNoResult},
    {Kind::Float, "vmsr*",                                  kVectorMultiply, {1, 1, 1}, {1, 1, 1}, kSingle | kNoResult},
    {Kind::Float, "vmrs*",                                  kVectorMultiply, {1, 1, 1}, {1, 1, 2}, kSingle},
    {Kind::Float, "vmov* vins vmovx",                       kVectorMultiply, {1, 1, 1}, {1, 1, 1}},
    {Kind::Float, "*",                                      kVectorMultiply, {1, 1, 1}, {2, 2, 2}},

    {Kind::Vector, "vctp* vpst vpnot",                      kVectorControl,  {1, 1, 1}, {1, 1, 1}, kNoResult},
    {Kind::Vector, "vld2* vld4*",                           kVectorMemory,   {2, 2, 2}, {2, 2, 4}},
    {Kind::Vector, "vldr*",                                 kVectorMemory,   {2, 2, 2}, {1, 1, 1}},
    {Kind::Vector, "vst*",                                  kVectorMemory,   {2, 2, 2}, {1, 1, 1}, kNoResult},
    {Kind::Vector, "vcmp* vpt*",                            kVectorMultiply, {2, 2, 2}, {1, 1, 1}, kNoResult},
    {Kind::Vector, "vmovn* vqmov*",                         kVectorInteger,  {2, 2, 2}, {3, 3, 3}},
    {Kind::Vector, "vmovl*",                                kVectorInteger,  {2, 2, 2}, {1, 1, 2}},
    {Kind::Vector, "vmov*",                                 kVectorMultiply, {2, 2, 2}, {1, 1, 1}},
    {Kind::Vector, "vqshrn* vqrshrn* vqshrun* vqrshrun* vshrn* vrshrn*", kVectorInteger, {2, 2, 2}, {3, 3, 3}},
    {Kind::Vector, "vabav vmaxv* vminv* vmaxav* vminav*",   kVectorInteger,  {2, 2, 2}, {3, 3, 4}},
    {Kind::Vector, "vadc* vsbc* vrshl* vqshl* vqrshl* vrshr*", kVectorInteger, {2, 2, 2}, {2, 2, 2}},
    {Kind::Vector, "vaddv* vaddlv*",                        kVectorMultiply, {2, 2, 2}, {2, 2, 4}},
    {Kind::Vector, "vmladav* vmlsdav* vmlaldav* vmlsldav* vrmlaldav* vrmlsldav*", kVectorMultiply, {2, 2, 2}, {2, 2, 4}},
    {Kind::Vector, "vmaxnmv* vminnmv* vmaxnmav* vminnmav*", kVectorMultiply, {4, 4, 4}, {4, 4, 4}},
    {Kind::Vector, "vfma* vfms* vcmla*",                    kVectorMultiply, {2, 2, 2}, {2, 2, 4}},
    {Kind::Vector, "vmul* vmla* vmlas* vrmulh* vqdml* vqrdml* vqdmul* vqrdmul* vcmul* vcvt* vrint*", kVectorMultiply, {2, 2, 2}, {2, 2, 3}},
    {Kind::Vector, "vadd.f* vsub.f* vabd.f* vabs.f* vneg.f* vmaxnm* vminnm* vcadd.f*", kVectorMultiply, {2, 2, 2}, {1, 1, 2}},
    {Kind::Vector, "*",                                     kVectorInteger,  {2, 2, 2}, {1, 1, 2}},
    // clang-format on
};

constexpr BranchCosts kBranchCosts[] = {
    {0, 0, 0, 0, 0, 0, 0},
    {2, 0, 0, 12, 12, 6, 1},  // M33: three stages, no branch prediction
    {1, 0, 0, 12, 12, 6, 2},  // M55: four stages, no branch prediction; the loop cache holds LE
    {0, 7, 0, 15, 14, 6, 2},  // M85: seven stages, branch prediction
};

constexpr uint8_t kFlags = 16, kFirstVector = 17, kNoRegister = 0xff;

/// An operand of a row: the bank (R, s, d, q) and the field with the number.
struct Operand {
  char bank, field;
};

/// Properties of a row that do not depend on the decoded instruction.
struct RowTiming {
  const Rule* rule = nullptr;
  std::vector<Operand> operands;
  bool firstIsRead = false, setsFlags = false, readsFlags = false;
  bool smallImmediate = false;  // ADD, SUB with an immediate operand
};

bool matches(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const size_t space = names.find(' ');
    std::string_view pattern = names.substr(0, space);
    names = space == std::string_view::npos ? std::string_view() : names.substr(space + 1);
    const bool open = pattern.back() == '*';
    if (open) pattern.remove_suffix(1);
    if (open ? name.substr(0, pattern.size()) == pattern : name == pattern) return true;
  }
  return false;
}

RowTiming timingOf(const Encoding& row) {
  RowTiming timing;
  const std::string_view text = row.text;
  const size_t space = text.find(' ');
  const std::string_view full = text.substr(0, space), base = text.substr(0, std::min(text.find('.'), space));
  Kind kind = Kind::Scalar;
  if (base.front() == 'v') {
    const bool vector =
        text.find("q{") != std::string_view::npos || base.substr(0, 4) == "vctp" || base.substr(0, 2) == "vp";
    kind = vector ? Kind::Vector : Kind::Float;
  }
  for (const Rule& rule : kRules) {
    if (rule.kind != kind || !(matches(rule.names, base) || matches(rule.names, full))) continue;
    timing.rule = &rule;
    break;
  }
  CARINA_CHECK(timing.rule != nullptr, "the last rule of each kind fits everything");

  for (size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const std::string_view inside = text.substr(at + 1, text.find('}', at) - at - 1);
    const char before = at == 0 ? ' ' : text[at - 1];
    if (inside.size() == 2 && inside[0] == 'R') {
      timing.operands.push_back({'R', inside[1]});
    } else if (inside == "mem") {
      timing.operands.push_back({'R', 'n'});
    } else if (inside.size() == 1 && (before == 's' || before == 'd' || before == 'q')) {
      timing.operands.push_back({before, inside[0]});
    }
  }
  if (kind == Kind::Scalar) {
    const bool compares = matches("cmp* cmn* tst* teq*", base);
    timing.setsFlags =
        compares || (base.size() > 3 && base.back() == 's' && !matches("mls mrs vmrs dls wls", base));
    timing.readsFlags =
        full == "b{c}" || full == "b{c}.w" || matches("adc* sbc* csel csinc csinv csneg it", base);
    const bool twoOperands =
        timing.operands.size() == 2 || (timing.operands.size() == 1 && row.pattern[0] == '0');
    timing.firstIsRead =
        twoOperands &&
        matches("and* eor* lsl* lsr* asr* adc* sbc* ror* orr* bic* mul* add* sub* movt bfi bfc", base);
    timing.smallImmediate = matches("add adds sub subs", base) && text.find("{#i}") != std::string_view::npos;
  } else {
    timing.firstIsRead = matches(
        "vfma* vfms* vfnma* vfnms* vmla* vmls* vnmla* vnmls* vmlaldav* vaddva vaddlva vsli vsri", base);
  }
  return timing;
}

const RowTiming& rowTiming(const CompiledEncoding& encoding) {
  static const std::vector<RowTiming> table = [] {
    std::vector<RowTiming> rows;
    for (const CompiledEncoding& row : allEncodings()) rows.push_back(timingOf(*row.row));
    return rows;
  }();
  return table[static_cast<size_t>(&encoding - allEncodings().data())];
}

uint8_t registerOf(const Operand& operand, const Op& op) {
  uint32_t number = 0;
  switch (operand.field) {
    case 'd':
      number = op.d;
      break;
    case 'n':
      number = op.n;
      break;
    case 'm':
      number = op.m;
      break;
    case 'a':
      number = op.a;
      break;
    case 'x':
      number = op.x;
      break;
    default:
      return kNoRegister;
  }
  if (operand.bank == 'R') return number < 16 ? static_cast<uint8_t>(number) : kNoRegister;
  const uint32_t perVector = operand.bank == 's' ? 4 : operand.bank == 'd' ? 2 : 1;
  return number / perVector < 8 ? static_cast<uint8_t>(kFirstVector + number / perVector) : kNoRegister;
}

/// Number of words that an instruction with a register list moves.
uint32_t wordsOf(const Rule& rule, const Op& op) {
  return std::max<uint32_t>(
      1, rule.kind == Kind::Scalar ? static_cast<uint32_t>(__builtin_popcount(op.imm & 0xffff)) : op.a);
}

/// Data processing with a shifted register: the shifter takes a cycle of its own on M55.
bool shiftsOperand(const Op& op) {
  return op.size == 4 && op.code >> 25 == 0x75 && (op.code & 0x70c0) != 0;
}

}  // namespace

const char* pipelineName(Pipeline pipeline) {
  constexpr const char* kNames[] = {"none", "Cortex-M33", "Cortex-M55", "Cortex-M85"};
  return kNames[static_cast<size_t>(pipeline)];
}

const BranchCosts& branchCosts(Pipeline pipeline) {
  return kBranchCosts[static_cast<size_t>(pipeline)];
}

uint32_t transferCycles(Pipeline pipeline, uint32_t words) {
  const uint32_t each = branchCosts(pipeline).words;
  return each == 0 ? 0 : (words + each - 1) / each;
}

BranchKind branchKind(const CompiledEncoding* encoding) {
  if (encoding == nullptr) return BranchKind::None;
  const std::string_view text = encoding->row->text;
  const std::string_view name = text.substr(0, text.find_first_of(" ."));
  if (matches("le letp", name)) return BranchKind::Loop;
  if (matches("b{c} cbz cbnz wls wlstp", name)) return BranchKind::Conditional;
  if (matches("b bl", name)) return BranchKind::Fixed;
  if (matches("bkpt svc udf wfe wfi isb msr cps sg", name)) return BranchKind::None;
  return BranchKind::Computed;
}

bool IssueModel::pairs(const CompiledEncoding& encoding, const Op& op) const {
  const RowTiming& row = rowTiming(encoding);
  if (alone_ || (row.rule->flags & kSingle) != 0) return false;
  if (pipeline_ == Pipeline::M85) return true;
  const bool easy = (row.rule->flags & kEasy) != 0 || row.smallImmediate;
  return leads_ && op.size == 2 && (easy || easy_);
}

uint32_t IssueModel::add(const CompiledEncoding* encoding, const Op& op) {
  if (pipeline_ == Pipeline::None || encoding == nullptr) {
    last_ = next_++;
    alone_ = true;
    return last_;
  }
  const RowTiming& row = rowTiming(*encoding);
  const Rule& rule = *row.rule;
  uint32_t occupies = rule.occupies.of(pipeline_), latency = rule.latency.of(pipeline_);
  if ((rule.flags & kPerWord) != 0) {
    occupies = (wordsOf(rule, op) + occupies - 1) / occupies;
    latency += occupies - 1;
  }
  if (pipeline_ == Pipeline::M55 && rule.unit == kAlu && shiftsOperand(op)) latency = 2;

  // The cycle in which everything that it needs is available.
  const bool paired = pairs(*encoding, op);
  uint32_t start = paired ? last_ : next_;
  // M85 computes addresses a stage before it computes anything else.
  const bool moves = rule.unit == kLoad || rule.unit == kStore;
  const bool early = pipeline_ == Pipeline::M85 && (moves || rule.unit == kVectorMemory);
  for (size_t i = 0; i < row.operands.size(); ++i) {
    const bool written = i == 0 && (rule.flags & kNoResult) == 0;
    if (written && !row.firstIsRead) continue;
    const uint8_t which = registerOf(row.operands[i], op);
    if (which == kNoRegister || ready_[which] == 0) continue;
    const bool address = early && row.operands[i].bank == 'R' && i != 0;
    start = std::max(start, ready_[which] + (address ? 1 : 0));
  }
  // Branches may start together with the instruction that sets the flags.
  if (row.readsFlags && rule.unit != kBranch) start = std::max(start, ready_[kFlags]);
  // M85 has two of these units; on the others, the simple instruction of a pair has its own.
  const bool twice = pipeline_ == Pipeline::M85 ? rule.unit == kAlu || moves : paired && rule.unit == kAlu;
  if (rule.unit != kNowhere && !twice) start = std::max(start, freeAt_[rule.unit]);

  // At most two start in a cycle.
  const bool second = !alone_ && start == last_;
  alone_ = second || (rule.flags & (kSingle | kBlocks)) != 0;
  leads_ = op.size == 2;
  easy_ = (rule.flags & kEasy) != 0 || row.smallImmediate;
  last_ = start;
  const uint32_t holds = (rule.flags & kBlocks) != 0             ? latency
                         : (rule.flags & kPerWord) != 0 && moves ? occupies
                                                                 : 1;
  next_ = std::max(next_, start + (occupies == 0 ? 0 : holds));
  if (!used_[rule.unit]) {
    used_[rule.unit] = true;
    firstUse_[rule.unit] = start;
  }
  freeAt_[rule.unit] = start + occupies;
  if ((rule.flags & kNoResult) == 0 && !row.operands.empty()) {
    const uint8_t result = registerOf(row.operands[0], op);
    if (result != kNoRegister) ready_[result] = start + latency;
  }
  if (row.setsFlags) ready_[kFlags] = start + 1;
  return start;
}

uint32_t IssueModel::cycles() const {
  uint32_t result = std::max(next_, 1u);  // LE alone takes none, but time must pass
  for (uint32_t unit = 0; unit < kUnits; ++unit)
    if (used_[unit]) result = std::max(result, freeAt_[unit] - firstUse_[unit]);
  return result;
}

}  // namespace carina::cpu_m
