// SPDX-License-Identifier: Apache-2.0
#include "small_network.hpp"

#include <algorithm>

namespace carina::ethosn::test {
namespace {

const Variant& variant() {
  return **findVariant("ethos-n78-4tops-4ple");
}

uint32_t raw(Counter counter) {
  return static_cast<uint32_t>(counter);
}

DmaCommand linear(CommandType type, uint32_t agent, int h, int w, int c, uint32_t address, uint32_t id) {
  DmaCommand dma{.type = type, .agent = agent};
  dma.sramAddress = sram_address::kBytes.of(address);
  dma.stride0 = dma_bytes::kValue.of(w * c);
  dma.channels = dma_channels::kChannels.of(c);
  dma.emcs = 0xFFFF;
  dma.totalBytes = dma_bytes::kValue.of(h * w * c);
  dma.cmd = dma_cmd::kId.of(id) | dma_cmd::kFormat.of(static_cast<int64_t>(dma_cmd::Format::Nhwc));
  return dma;
}

}  // namespace

std::vector<uint8_t> SmallConvolution::weightData() const {
  const int perOfm = kernel * kernel * c, streams = std::min(variant().ogs(), ofms), slice = variant().igs();
  std::vector<std::vector<uint8_t>> ogs;
  size_t longest = 0;
  for (int og = 0; og < streams; ++og) {
    BitWriter bits;
    for (int ofm = og; ofm < ofms; ofm += streams) {
      const size_t start = bits.bits();
      bits.put(0, 16);
      bits.put(static_cast<uint32_t>(bias[static_cast<size_t>(ofm)]), 32);
      bits.put(1, 1);
      bits.put(scale, 16);
      bits.put(shift, 6);
      bits.put(static_cast<uint8_t>(outputZeroPoint), 8);
      bits.put(static_cast<uint64_t>(perOfm), 17);
      bits.put(1, 1);
      bits.put(7, 3);  // neither zero runs nor divisors: 9-bit symbols
      bits.put(7, 3);
      bits.put(0, 6);
      bits.put(1, 1);
      bits.put(0, 5);
      bits.put(7, 3);
      for (int c0 = 0; c0 < c; c0 += slice) {
        for (int tap = 0; tap < kernel * kernel; ++tap) {
          for (int i = c0; i < std::min(c0 + slice, c); ++i) {
            const int weight = weights[static_cast<size_t>((ofm * kernel * kernel + tap) * c + i)];
            bits.put(static_cast<uint64_t>(2 * std::abs(weight) - (weight < 0)), 9);
          }
        }
      }
      bits.set(start, (bits.bits() + 127) / 128 - start / 128, 16);
    }
    ogs.push_back(bits.bytes());
    longest = std::max(longest, bits.bytes().size());
  }
  longest = (longest + 15) / 16 * 16;
  const auto banks = static_cast<size_t>(variant().banks());
  std::vector<uint8_t> data(longest * banks);
  for (size_t og = 0; og < ogs.size(); ++og) {
    for (size_t i = 0; i < ogs[og].size(); ++i) data[(i / 16 * banks + og) * 16 + i % 16] = ogs[og][i];
  }
  return data;
}

CommandStream SmallConvolution::stream(uint32_t weightBytes) const {
  const auto add = [](CommandStream& to, auto data) { to.agents.push_back(Agent{.data = data}); };
  const uint16_t kernelId = *pleKernelId(*variant().kernels, ple);
  CommandStream s;
  add(s, Agent::Ifm{{.buffer = 1, .stride1 = dma_bytes::kValue.of(w * c)}});
  add(s, WeightStreamer{.buffer = 2});
  add(s, PleLoader{.pleKernel = kernelId});
  MceScheduler mce;
  mce.pleKernel = kernelId;
  mce.activationConfig = activation_config::kMin.of(0) | activation_config::kMax.of(255);
  mce.filter = filter::kMode.of(static_cast<int64_t>(filter::Mode::FilterNxM));
  for (size_t i = 0; i < 4; ++i) mce.filter |= filter::kWidth[i].of(kernel) | filter::kHeight[i].of(kernel);
  mce.ifmZeroPoint = ifm_zero_point::kUnsigned.of(inputZeroPoint);
  mce.ifmDefaultSlotSize =
      ifm_default_slot_size::kWidth.of((w + 7) / 8 * 8) | ifm_default_slot_size::kHeight.of((h + 7) / 8 * 8);
  mce.stripeBlockConfig = stripe_block_config::kWidth.of(16) | stripe_block_config::kHeight.of(16);
  mce.ifmSlotBaseAddress = sram_address::kBytes.of(kIfmAddress);
  mce.pleMceifConfig = ple_mceif_config::kBuffers.of(4) | ple_mceif_config::kBufferWords.of(16);
  add(s, mce);
  add(s,
      PleScheduler{.input = PleInput::MceAllOgs, .pleKernel = kernelId, .kernelSramAddress = kCodeAddress});
  add(s, Agent::Ofm{{.buffer = 3, .stride1 = dma_bytes::kValue.of(resultW() * resultC())}});

  DmaCommand code{.type = CommandType::LoadPleCodeIntoSram, .agent = 2};
  code.sramAddress = sram_address::kBytes.of(kCodeAddress);
  code.emcs = 0xFF;
  code.cmd = dma_cmd::kFormat.of(static_cast<int64_t>(dma_cmd::Format::Broadcast));
  DmaCommand weightLoad{.type = CommandType::LoadWeightStripe, .agent = 1};
  weightLoad.sramAddress = sram_address::kBytes.of(kWeightAddress);
  weightLoad.emcs = 0xFFFF;
  weightLoad.totalBytes = dma_bytes::kValue.of(weightBytes);
  weightLoad.cmd = dma_cmd::kFormat.of(static_cast<int64_t>(dma_cmd::Format::Weights));
  s.queue(Queue::DmaRead) = {code, linear(CommandType::LoadIfmStripe, 0, h, w, c, kIfmAddress, 1),
                             weightLoad};

  ProgramMceStripe program{.agent = 3};
  program.ceControl = ce_control::kIfmPads.of(1) | ce_control::kOutputType.of(0);
  const int64_t group = (c + 15) / 16 * 64;
  program.ifmRowStride =
      ifm_row_stride::kDefault.of((w + 7) / 8 * group) | ifm_row_stride::kResidual.of((w + 7) / 8 * group);
  program.ifmConfig1 = ifm_config1::kGroupStride.of(group) | ifm_config1::kNumIfm.of(c);
  program.ifmPad.fill(ifm_pad::kLeft.of(pad) | ifm_pad::kTop.of(pad) | ifm_pad::kDeltaWidth.of(w - mceW()) |
                      ifm_pad::kDeltaHeight.of(h - mceH()));
  program.ofmStripeSize = ofm_stripe_size::kWidth.of(mceW()) | ofm_stripe_size::kHeight.of(mceH());
  program.ofmConfig = ofm_config::kNumOfm.of(ofms);
  program.weightBaseAddress.fill(sram_address::kBytes.of(kWeightAddress));
  s.queue(Queue::Mce) = {program, WaitForCounter{raw(Counter::DmaRead), 3}, ConfigMceif{3},
                         StartMceStripe{3, 8}};

  StartPleStripe start{.agent = 4};
  start.scratch[0] = 0xF;
  start.scratch[1] = static_cast<uint32_t>(inputZeroPoint) << 16;
  start.scratch[2] = rescale[0] | static_cast<uint32_t>(rescale[1]) << 16;
  start.scratch[4] = rescale[2] | static_cast<uint32_t>(rescale[3]) << 16;
  start.scratch[5] = kOfmAddress / 16 | static_cast<uint32_t>(outputZeroPoint) << 16;
  start.scratch[6] = static_cast<uint32_t>(resultW() | resultH() << 16);
  start.scratch[7] = static_cast<uint32_t>(resultC());
  s.queue(Queue::Ple) = {WaitForCounter{raw(Counter::DmaRead), 1}, LoadPleCodeIntoPleSram{4},
                         WaitForCounter{raw(Counter::PleCodeLoaded), 1},
                         WaitForCounter{raw(Counter::Mceif), 1}, start};
  s.queue(Queue::DmaWrite) = {
      WaitForCounter{raw(Counter::PleStripe), 1},
      linear(CommandType::StoreOfmStripe, 5, resultH(), resultW(), resultC(), kOfmAddress, 4)};
  return s;
}

CompiledNetwork SmallConvolution::network() const {
  std::vector<uint8_t> data = weightData();
  const CommandStream commands = stream(static_cast<uint32_t>(data.size()));
  return networkOf(commands, static_cast<uint32_t>(h * w * c),
                   static_cast<uint32_t>(resultH() * resultW() * resultC()), std::move(data));
}

CompiledNetwork networkOf(const CommandStream& stream, uint32_t inputBytes, uint32_t outputBytes,
                          std::vector<uint8_t> weights) {
  CompiledNetwork network;
  network.constantControlUnit = *writeCommandStream(stream);
  network.inputs = {{1, 0, inputBytes, "in"}};
  network.outputs = {{3, 0, outputBytes, "out"}};
  network.controlUnitBuffers = {{0, 0, static_cast<uint32_t>(network.constantControlUnit.size()), ""}};
  network.dmaBuffers = {{2, 0, static_cast<uint32_t>(weights.size()), "weights"}};
  network.constantDma = std::move(weights);
  return network;
}

}  // namespace carina::ethosn::test
