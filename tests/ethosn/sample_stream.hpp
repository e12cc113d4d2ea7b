// SPDX-License-Identifier: Apache-2.0
// A small command stream that contains every agent and command; it is not meaningful to the hardware.
#pragma once

#include "ethosn/stream/command_stream.hpp"
#include "ethosn/stream/compiled_network.hpp"

namespace carina::ethosn::test {

inline CommandStream sampleStream() {
  CommandStream stream;
  const auto add = [&](auto data) { stream.agents.push_back(Agent{.data = data}); };
  add(Agent::Ifm{{.buffer = 1, .compConfig0 = dma_comp_config0::kZeroPoint.of(-3), .stride1 = 255}});
  add(WeightStreamer{.buffer = 2});
  MceScheduler mce;
  mce.operation = MceOperation::Depthwise;
  mce.pleKernel = 262;
  mce.activationConfig = activation_config::kMin.of(-128) | activation_config::kMax.of(127);
  mce.pleMceifConfig = 0x3f;
  add(mce);
  add(PleLoader{.pleKernel = 262});
  add(PleScheduler{.input = PleInput::MceOneOg, .pleKernel = 262, .kernelSramAddress = 61440});
  add(Agent::Ofm{{.buffer = 3}});

  auto& reads = stream.queue(Queue::DmaRead);
  reads.push_back(DmaCommand{.type = CommandType::LoadPleCodeIntoSram, .agent = 3, .emcs = 0xff});
  reads.push_back(DmaCommand{.type = CommandType::LoadIfmStripe,
                             .agent = 0,
                             .dramOffset = 64,
                             .sramAddress = 0xEF0,
                             .totalBytes = 4095});
  reads.push_back(DmaCommand{.type = CommandType::LoadWeightStripe, .agent = 1, .totalBytes = 1535});
  stream.queue(Queue::DmaWrite).push_back(WaitForCounter{static_cast<uint32_t>(Counter::PleStripe), 1});
  stream.queue(Queue::DmaWrite)
      .push_back(DmaCommand{.type = CommandType::StoreOfmStripe, .agent = 5, .cmd = 4});
  ProgramMceStripe program;
  program.agent = 2;
  program.ceControl = ce_control::kWinograd.of(1);
  program.mulEnable[31] = 7;
  program.ifmPad[4] = ifm_pad::kDeltaWidth.of(-1);
  program.blocks = 4;
  auto& mceQueue = stream.queue(Queue::Mce);
  mceQueue.push_back(program);
  mceQueue.push_back(WaitForCounter{static_cast<uint32_t>(Counter::DmaRead), 3});
  mceQueue.push_back(ConfigMceif{2});
  mceQueue.push_back(StartMceStripe{2, 8});
  auto& ple = stream.queue(Queue::Ple);
  ple.push_back(LoadPleCodeIntoPleSram{4});
  ple.push_back(StartPleStripe{4, {15, 1, 2, 3, 4, 5, 6, 7}});
  return stream;
}

inline CompiledNetwork sampleNetwork() {
  CompiledNetwork network;
  network.constantControlUnit = *writeCommandStream(sampleStream());
  network.constantDma.resize(1536, 0xA5);
  network.inputs = {{1, 0, 4096, "input \"a\""}};
  network.outputs = {{3, 0, 4096, ""}};
  network.controlUnitBuffers = {{0, 0, static_cast<uint32_t>(network.constantControlUnit.size()), ""}};
  network.dmaBuffers = {{2, 0, 1536, "weights"}};
  network.intermediates = {{4, 0, 100, ""}, {5, 128, 100, ""}};
  return network;
}

}  // namespace carina::ethosn::test
