// SPDX-License-Identifier: Apache-2.0
// The generated tables agree with the hand-written register map of the runtime, and the fields of a command
// never overlap.
#include "npu/isa/isa.hpp"

#include <gtest/gtest.h>

#include <string_view>

#include "format/ethosu_registers.hpp"
#include "npu/isa/stream.hpp"

namespace carina::npu {
namespace {

uint32_t offsetOf(Family family, std::string_view name) {
  const isa::Architecture& arch = architecture(family);
  for (uint16_t n = 0; n < arch.registerCount; ++n) {
    if (name == arch.registers[n].name) return arch.registers[n].offset;
  }
  return UINT32_MAX;
}

TEST(Isa, RegisterMapMatchesTheTables) {
  namespace reg = format::ethosu_reg;
  for (const Family family : {Family::U55, Family::U65, Family::U85}) {
    const std::pair<const char*, uint32_t> common[] = {{"ID", reg::kId},
                                                       {"STATUS", reg::kStatus},
                                                       {"CMD", reg::kCmd},
                                                       {"RESET", reg::kReset},
                                                       {"QBASE", reg::kQBase},
                                                       {"QREAD", reg::kQRead},
                                                       {"QCONFIG", reg::kQConfig},
                                                       {"QSIZE", reg::kQSize},
                                                       {"PROT", reg::kProt},
                                                       {"CONFIG", reg::kConfig},
                                                       {"REGIONCFG", reg::kRegionCfg},
                                                       {"BASEP", reg::kBaseP},
                                                       {"CLKFORCE", reg::kClkForce},
                                                       {"DEBUG_ADDRESS", reg::kDebugAddress},
                                                       {"DEBUG_MISC", reg::kDebugMisc},
                                                       {"CURRENT_QREAD", reg::kCurrentQRead},
                                                       {"CURRENT_OP", reg::kCurrentOp},
                                                       {"CURRENT_CMD", reg::kCurrentCmd},
                                                       {"REVISION", reg::kRevision},
                                                       {"PID4", reg::kPid4},
                                                       {"PID0", reg::kPid0},
                                                       {"CID0", reg::kCid0}};
    for (const auto& [name, offset] : common)
      EXPECT_EQ(offsetOf(family, name), offset) << familyName(family) << ' ' << name;
    const uint32_t pmu =
        format::ethosuPmuBase(static_cast<format::EthosUProduct>(architecture(family).product));
    const std::pair<const char*, uint32_t> counters[] = {{"PMCR", reg::kPmcr},
                                                         {"PMCNTENSET", reg::kPmCntEnSet},
                                                         {"PMCNTENCLR", reg::kPmCntEnClr},
                                                         {"PMOVSSET", reg::kPmOvsSet},
                                                         {"PMOVSCLR", reg::kPmOvsClr},
                                                         {"PMINTSET", reg::kPmIntSet},
                                                         {"PMINTCLR", reg::kPmIntClr},
                                                         {"PMCCNTR", reg::kPmCcntrLo},
                                                         {"PMCCNTR_CFG", reg::kPmCcntrCfg},
                                                         {"PMCAXI_CHAN", reg::kPmcAxiChan},
                                                         {"PMEVCNTR", reg::kPmEvCntr0},
                                                         {"PMEVTYPER", reg::kPmEvTyper0}};
    for (const auto& [name, offset] : counters)
      EXPECT_EQ(offsetOf(family, name), pmu + offset) << familyName(family) << ' ' << name;
  }
  EXPECT_EQ(offsetOf(Family::U55, "AXI_LIMIT0"), reg::kAxiLimit0);
  EXPECT_EQ(offsetOf(Family::U55, "LOCK"), reg::kLock);
  EXPECT_EQ(offsetOf(Family::U85, "COND_STATUS"), reg::kCondStatus);
  EXPECT_EQ(offsetOf(Family::U85, "POWER_CTRL"), reg::kPowerCtrl);
  EXPECT_EQ(offsetOf(Family::U85, "MEM_ATTR"), reg::kMemAttr0);
  EXPECT_EQ(offsetOf(Family::U85, "AXI_SRAM"), reg::kAxiSram);
  EXPECT_EQ(offsetOf(Family::U85, "AXI_EXT"), reg::kAxiExt);
  EXPECT_EQ(offsetOf(Family::U85, "CFG_SRAM_CAP"), reg::kCfgSramCap);
  EXPECT_EQ(offsetOf(Family::U85, "CFG_EXT_CAP"), reg::kCfgExtCap);
  EXPECT_EQ(offsetOf(Family::U85, "INTERNAL_MEMORY"), reg::kInternalMemory);
  EXPECT_EQ(architecture(Family::U55).idWord, format::ethosu_id::kU55);
  EXPECT_EQ(architecture(Family::U65).idWord, format::ethosu_id::kU65);
  EXPECT_EQ(architecture(Family::U85).idWord, format::ethosu_id::kU85);
}

TEST(Isa, FieldsDoNotOverlapAndHoldTheirLimits) {
  for (const Family family : {Family::U55, Family::U65, Family::U85}) {
    const isa::Architecture& arch = architecture(family);
    for (uint16_t n = 0; n < arch.commandCount; ++n) {
      const isa::Command& command = arch.commands[n];
      EXPECT_EQ(findCommand(family, command.twoWords, command.opcode), &command);
      EXPECT_EQ(findCommand(family, command.name), &command);
      uint64_t covered = 0;
      for (uint8_t f = 0; f < command.fieldCount; ++f) {
        isa::Command one = command;
        one.fields = &command.fields[f];
        one.fieldCount = 1;
        const uint64_t mask = fieldMask(one);
        EXPECT_EQ(covered & mask, 0u) << command.name;
        EXPECT_EQ(mask & 0xffffu, 0u) << command.name;
        covered |= mask;
        uint64_t bits = 0;
        ASSERT_TRUE(setField(command.fields[f], fieldValue(command.fields[f], mask), bits).ok())
            << command.name;
        EXPECT_EQ(bits, mask) << command.name;
      }
      EXPECT_EQ(fieldMask(command), covered);
    }
  }
}

TEST(Isa, EventsThatAllFamiliesShare) {
  for (const Family family : {Family::U55, Family::U65, Family::U85}) {
    const isa::Architecture& arch = architecture(family);
    const auto idOf = [&](std::string_view name) {
      for (uint16_t n = 0; n < arch.pmuEventCount; ++n) {
        if (name == arch.pmuEvents[n].name) return uint32_t{arch.pmuEvents[n].id};
      }
      return UINT32_MAX;
    };
    EXPECT_EQ(idOf("CYCLE"), format::ethosu_pmu::kCycle);
    EXPECT_EQ(idOf("NPU_IDLE"), format::ethosu_pmu::kNpuIdle);
    EXPECT_EQ(idOf("NPU_ACTIVE"), format::ethosu_pmu::kNpuActive);
    EXPECT_EQ(idOf("MAC_ACTIVE"), format::ethosu_pmu::kMacActive);
    EXPECT_EQ(idOf("CC_STALLED_ON_BLOCKDEP"), format::ethosu_pmu::kBlockDepStalled);
  }
}

}  // namespace
}  // namespace carina::npu
