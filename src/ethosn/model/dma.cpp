// SPDX-License-Identifier: Apache-2.0
// Transfers between DRAM and SRAM in all formats.
#include <bit>

#include "ethosn/model/machine.hpp"

namespace carina::ethosn::model {

using dma_cmd::Format;

struct Machine::Transfer {
  const DmaCommand& command;
  Format format;
  bool store;
  Buffers::View buffer;
  uint64_t stride0, stride1, stride2, stride3, total;
  int64_t channels;
  int64_t address;  // in SRAM
};

namespace {

bool mayStore(Format format) {
  return format == Format::Nhwc || format == Format::Nchw || format == Format::Nhwcb ||
         format == Format::NhwcbWeightStreaming || format == Format::FcafDeep || format == Format::FcafWide;
}

uint64_t bytesIn(uint32_t word) {
  return static_cast<uint64_t>(dma_bytes::kValue.in(word));
}

}  // namespace

Status Machine::checkDram(const Transfer& transfer, uint64_t end) const {
  const uint64_t limit = transfer.store ? transfer.buffer.size : transfer.buffer.bytes.size();
  if (end <= limit) return {};
  return fail(Code::NpuFault, "the transfer ends at byte {} of a buffer of {} bytes", end,
              transfer.buffer.size);
}

Status Machine::transfer(const DmaCommand& command) {
  const auto format = static_cast<Format>(dma_cmd::kFormat.in(command.cmd));
  const int64_t address = sram_address::kBytes.in(command.sramAddress);
  stats(command.agent).stripes += 1;
  if (command.type == CommandType::LoadPleCodeIntoSram) {
    const auto& loader = std::get<PleLoader>(stream_.agents[command.agent].data);
    if (!pleKernel(loader.pleKernel))
      return fail(Code::NpuFault, "there is no PLE kernel {}", loader.pleKernel);
    if (format != Format::Broadcast)
      return fail(Code::NpuFault, "PLE code is loaded in format {}", static_cast<int>(format));
    CARINA_RETURN_IF_ERROR(sram_.checkRange(address, kPleKernelMaxBytes));
    touchSram(address, kPleKernelMaxBytes, command.emcs, true);
    return {};
  }
  const bool store = command.type == CommandType::StoreOfmStripe;
  uint32_t stride1 = 0, id = 0;
  std::visit(
      [&](const auto& agent) {
        if constexpr (requires { agent.stride1; }) stride1 = agent.stride1;
        if constexpr (requires { agent.buffer; }) id = agent.buffer;
      },
      stream_.agents[command.agent].data);
  CARINA_TRY(const Buffers::View buffer, buffers_.find(id));
  if (store && buffer.kind != BufferKind::Output && buffer.kind != BufferKind::Intermediate) {
    return fail(Code::NpuFault, "a store writes to the {} buffer {}", bufferKindName(buffer.kind), id);
  }
  if ((format == Format::Weights) != (command.type == CommandType::LoadWeightStripe)) {
    return fail(Code::NpuFault, "{} has format {}", commandTypeName(command.type), static_cast<int>(format));
  }
  if (store ? !mayStore(format) : format == Format::NhwcbWeightStreaming || format == Format::Broadcast) {
    return fail(Code::NpuFault, "{} cannot have format {}", commandTypeName(command.type),
                static_cast<int>(format));
  }
  const Transfer transfer{command,
                          format,
                          store,
                          buffer,
                          bytesIn(command.stride0),
                          bytesIn(stride1),
                          bytesIn(command.stride2),
                          bytesIn(command.stride3),
                          bytesIn(command.totalBytes),
                          dma_channels::kChannels.in(command.channels),
                          address};
  CARINA_RETURN_IF_ERROR(spend(kMovedSteps * static_cast<double>(transfer.total)));
  stats(command.agent).bytes += transfer.total;
  stats(command.agent).cycles += (transfer.total + 15) / 16;
  (store ? result_.stats.writtenBytes : result_.stats.readBytes) += transfer.total;
  // No valid transfer exceeds the SRAM by that much.
  if (transfer.total > static_cast<uint64_t>(2 * target_.sramBytes)) {
    return fail(Code::NpuFault, "a transfer of {} bytes does not fit the SRAM of {} bytes", transfer.total,
                target_.sramBytes);
  }
  switch (format) {
    case Format::Nhwc:
    case Format::Nchw:
      return linear(transfer);
    case Format::Nhwcb:
    case Format::NhwcbWeightStreaming:
      return bricks(transfer);
    case Format::Weights:
      return weights(transfer);
    case Format::FcafDeep:
    case Format::FcafWide:
      return cells(transfer);
    case Format::Broadcast:
      break;
  }
  return fail(Code::NpuFault, "unknown format {}", static_cast<int>(format));
}

/// NHWC: rows of STRIDE0 bytes, STRIDE1 apart. NCHW: rows of STRIDE0 elements, STRIDE1 apart, STRIDE2 bytes
/// per channel in the transfer, STRIDE3 between channels in DRAM.
Status Machine::linear(const Transfer& t) {
  const bool nchw = t.format == Format::Nchw;
  const int64_t c = t.channels;
  const uint64_t rowBytes = t.stride0;
  const uint64_t perRow = nchw ? rowBytes * static_cast<uint64_t>(c) : rowBytes;
  if (t.total % perRow != 0)
    return fail(Code::NpuFault, "{} bytes are not a whole number of rows of {} bytes", t.total, perRow);
  if (!nchw && rowBytes % static_cast<uint64_t>(c) != 0) {
    return fail(Code::NpuFault, "rows of {} bytes do not divide into {} channels", rowBytes, c);
  }
  const auto h = static_cast<int64_t>(t.total / perRow);
  const auto w = static_cast<int64_t>(nchw ? rowBytes : rowBytes / static_cast<uint64_t>(c));
  const Tile tile = sram_.packed(t.address, w, c);
  CARINA_RETURN_IF_ERROR(sram_.checkTile(tile, h, w, c));
  const uint64_t start = t.command.dramOffset;
  const uint64_t end = start + static_cast<uint64_t>(h - 1) * t.stride1 + rowBytes +
                       (nchw ? static_cast<uint64_t>(c - 1) * t.stride3 : 0);
  CARINA_RETURN_IF_ERROR(checkDram(t, end));
  touchTile(tile, 0, h, 0, w, c, !t.store);
  std::vector<uint8_t> channels(static_cast<size_t>(c));
  for (int64_t z = 0; z < (nchw ? c : 1); ++z) {
    for (int64_t y = 0; y < h; ++y) {
      touchDram(t.buffer,
                static_cast<int64_t>(start + static_cast<uint64_t>(y) * t.stride1 +
                                     (nchw ? static_cast<uint64_t>(z) * t.stride3 : 0)),
                static_cast<int64_t>(rowBytes), t.store);
    }
  }
  for (int64_t y = 0; y < h; ++y) {
    uint8_t* row = t.buffer.bytes.data() + start + static_cast<uint64_t>(y) * t.stride1;
    for (int64_t x = 0; x < w; ++x) {
      if (!nchw) {
        uint8_t* element = row + x * c;
        if (t.store) {
          sram_.read(tile, y, x, c, element);
        } else {
          sram_.write(tile, y, x, c, element);
        }
        continue;
      }
      if (t.store) sram_.read(tile, y, x, c, channels.data());
      for (int64_t z = 0; z < c; ++z) {
        uint8_t& dram = row[static_cast<uint64_t>(z) * t.stride3 + static_cast<uint64_t>(x)];
        if (t.store) {
          dram = channels[static_cast<size_t>(z)];
        } else {
          channels[static_cast<size_t>(z)] = dram;
        }
      }
      if (!t.store) sram_.write(tile, y, x, c, channels.data());
    }
  }
  return {};
}

/// NHWCB: groups of 8x8 elements, 64 bytes per channel; with weight streaming, STRIDE0 more bytes between
/// groups in DRAM.
Status Machine::bricks(const Transfer& t) {
  const int64_t c = t.channels, banks = variant_.banks();
  const auto perGroup = static_cast<uint64_t>(64 * c);
  if (t.total % perGroup != 0)
    return fail(Code::NpuFault, "{} bytes are not a whole number of groups of {} bytes", t.total, perGroup);
  const auto groups = static_cast<int64_t>(t.total / perGroup);
  const int64_t groupStride = (c + banks - 1) / banks * 64;
  CARINA_RETURN_IF_ERROR(sram_.checkRange(t.address, groups * groupStride));
  // The transfer may begin inside a brick: preceding channels belong to others.
  const uint64_t start = t.command.dramOffset;
  const uint64_t pitch = static_cast<uint64_t>((c + 15) / 16 * 1024) +
                         (t.format == Format::NhwcbWeightStreaming && t.command.stride0 != 0 ? t.stride0 : 0);
  const uint64_t last = static_cast<uint64_t>((c - 1) / 16 * 1024 + (c - 1) % 16 * 16) + 768 + 16;
  CARINA_RETURN_IF_ERROR(checkDram(t, start + static_cast<uint64_t>(groups - 1) * pitch + last));
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t sram = t.address + g * groupStride;
    const uint64_t dram = start + static_cast<uint64_t>(g) * pitch;
    for (int64_t z = 0; z < c; z += 16) {
      const int64_t part = std::min<int64_t>(16, c - z);
      for (int64_t patch = 0; patch < 4; ++patch) {
        touchDram(t.buffer, static_cast<int64_t>(dram) + z / 16 * 1024 + patch * 256, part * 16, t.store);
      }
    }
    touchTile(Tile{sram, 0, 0}, 0, 8, 0, 8, c, !t.store);
    for (int64_t z = 0; z < c; ++z) {
      const uint64_t channel = dram + static_cast<uint64_t>(z / 16 * 1024 + z % 16 * 16);
      uint8_t* words = sram_.row(sram + z / banks * 64) + z % banks;
      for (int64_t patch = 0; patch < 4; ++patch) {
        uint8_t* bytes = t.buffer.bytes.data() + channel + static_cast<uint64_t>(patch * 256);
        uint8_t* word = words + patch * 16 * banks;
        for (int64_t i = 0; i < 16; ++i) {
          if (t.store) {
            bytes[i] = word[i * banks];
          } else {
            word[i * banks] = bytes[i];
          }
        }
      }
    }
  }
  return {};
}

/// Weights: 16 bytes to each bank in turn.
Status Machine::weights(const Transfer& t) {
  if (t.buffer.kind != BufferKind::ConstantDma) {
    return fail(Code::NpuFault, "weights come from a buffer of kind {}", bufferKindName(t.buffer.kind));
  }
  const int64_t banks = variant_.banks();
  const auto units = static_cast<int64_t>((t.total + 15) / 16);
  CARINA_RETURN_IF_ERROR(sram_.checkRange(t.address, (units + banks - 1) / banks * 16));
  CARINA_RETURN_IF_ERROR(checkDram(t, t.command.dramOffset + t.total));
  touchSram(t.address, (units + banks - 1) / banks * 16, ~0u, true);
  for (uint64_t i = 0; i < t.total; ++i) {
    const auto unit = static_cast<int64_t>(i / 16);
    sram_.row(t.address + unit / banks * 16 + static_cast<int64_t>(i % 16))[unit % banks] =
        t.buffer.bytes[t.command.dramOffset + i];
  }
  ++weightLoads_;
  return {};
}

/// FCAF: the contents of a cell are not public. Cells keep their size, 64 bytes and 2048 of contents, and the
/// contents are stored uncompressed as [y][x][c].
Status Machine::cells(const Transfer& t) {
  assume(Assumption::FcafUncompressed);
  const int64_t cellW = t.format == Format::FcafWide ? 16 : 8, cellC = t.format == Format::FcafWide ? 16 : 32;
  constexpr int64_t kCellH = 8, kCellBytes = 2112, kHeader = 64;
  const auto w = static_cast<int64_t>(t.stride0), h = static_cast<int64_t>(t.stride3), c = t.channels;
  const auto pitchC = static_cast<int64_t>(t.stride1);  // channels of the tensor, in whole cells
  const auto pitchRow = static_cast<int64_t>(t.stride2);
  if (pitchC % cellC != 0 || pitchRow % (pitchC * cellW) != 0) {
    return fail(Code::NpuFault, "the strides {} and {} of a compressed map are not whole cells", pitchC,
                pitchRow);
  }
  const int64_t cellsC = pitchC / cellC, cellsRow = pitchRow / (pitchC * cellW) * cellsC;
  const Tile tile{t.address, dma_sram_stride::kGroup.in(t.command.sramStride) * 16,
                  dma_sram_stride::kRow.in(t.command.sramStride) * 16};
  CARINA_RETURN_IF_ERROR(sram_.checkTile(tile, h, w, c));
  CARINA_RETURN_IF_ERROR(spend(kMovedSteps * static_cast<double>(h * w) * static_cast<double>(c)));
  const int64_t lastCell = (h - 1) / kCellH * cellsRow + (w - 1) / cellW * cellsC + (c - 1) / cellC;
  const auto start = static_cast<int64_t>(t.command.dramOffset);
  CARINA_RETURN_IF_ERROR(checkDram(t, static_cast<uint64_t>(start + (lastCell + 1) * kCellBytes)));
  touchTile(tile, 0, h, 0, w, c, !t.store);
  std::vector<uint8_t> channels(static_cast<size_t>(c));
  for (int64_t y = 0; y < h; ++y) {
    for (int64_t x = 0; x < w; ++x) {
      if (t.store) sram_.read(tile, y, x, c, channels.data());
      for (int64_t z = 0; z < c; z += cellC) {
        const int64_t cell = y / kCellH * cellsRow + x / cellW * cellsC + z / cellC;
        const int64_t at = start + cell * kCellBytes + kHeader + (y % kCellH * cellW + x % cellW) * cellC;
        const int64_t part = std::min(cellC, c - z);
        uint8_t* bytes = t.buffer.bytes.data() + at;
        if (y % kCellH == 0 && x % cellW == 0)
          touchDram(t.buffer, start + cell * kCellBytes, kCellBytes, t.store);
        if (t.store) {
          std::memcpy(bytes, channels.data() + z, static_cast<size_t>(part));
        } else {
          std::memcpy(channels.data() + z, bytes, static_cast<size_t>(part));
        }
      }
      if (!t.store) sram_.write(tile, y, x, c, channels.data());
    }
  }
  return {};
}

}  // namespace carina::ethosn::model
