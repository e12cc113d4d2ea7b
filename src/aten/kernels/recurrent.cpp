// SPDX-License-Identifier: Apache-2.0
// Recurrent layers and cells: LSTM, GRU and plain RNNs. Gate order and formulas are PyTorch's (i f g o; r z
// n).
#include <algorithm>
#include <cmath>

#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/gemm.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/numeric.hpp"

namespace carina::aten {
namespace {

enum class CellKind : uint8_t { Lstm, Gru, Tanh, Relu };

CellKind kindOf(std::string_view name) {
  if (name.starts_with("aten.lstm")) return CellKind::Lstm;
  if (name.starts_with("aten.gru")) return CellKind::Gru;
  return name.starts_with("aten.rnn_relu") ? CellKind::Relu : CellKind::Tanh;
}
int64_t gatesOf(CellKind kind) {
  return kind == CellKind::Lstm ? 4 : kind == CellKind::Gru ? 3 : 1;
}

float sigmoidOf(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}

/// The parameters of one layer and direction; biases may be absent.
struct Cell {
  CellKind kind = CellKind::Lstm;
  const float *inputWeight = nullptr, *hiddenWeight = nullptr, *inputBias = nullptr, *hiddenBias = nullptr;
  int64_t features = 0, hidden = 0;
  const float* projection = nullptr;  // [projected, hidden]: projects the output of an LSTM cell to h
  int64_t projected = 0;
};

Status advance(const Cell& cell, int64_t batch, const float* x, int64_t from, const float* before, float* h,
               float* c, std::vector<float>& fromInput, std::vector<float>& fromHidden);

/// One time step for a batch: x[batch, features], h [batch, hidden or projected] and c [batch, hidden] are
/// updated in place.
Status step(const Cell& cell, int64_t batch, const float* x, float* h, float* c,
            std::vector<float>& fromInput, std::vector<float>& fromHidden) {
  if (!cell.projection) return advance(cell, batch, x, cell.hidden, h, h, c, fromInput, fromHidden);
  std::vector<float> given(static_cast<size_t>(batch * cell.hidden));
  CARINA_RETURN_IF_ERROR(advance(cell, batch, x, cell.projected, h, given.data(), c, fromInput, fromHidden));
  return gemm(true, batch, cell.projected, cell.hidden, 1, given.data(), cell.projection, 0, h);
}

/// The same without projection: `before` [batch, from] feeds the gates, h [batch, hidden] is the result.
Status advance(const Cell& cell, int64_t batch, const float* x, int64_t from, const float* before, float* h,
               float* c, std::vector<float>& fromInput, std::vector<float>& fromHidden) {
  const int64_t size = cell.hidden, width = gatesOf(cell.kind) * size;
  fromInput.resize(static_cast<size_t>(batch * width));
  fromHidden.resize(static_cast<size_t>(batch * width));
  CARINA_RETURN_IF_ERROR(
      gemm(true, batch, width, cell.features, 1, x, cell.inputWeight, 0, fromInput.data()));
  CARINA_RETURN_IF_ERROR(gemm(true, batch, width, from, 1, before, cell.hiddenWeight, 0, fromHidden.data()));
  for (int64_t b = 0; b < batch; ++b) {
    float* in = fromInput.data() + b * width;
    float* rec = fromHidden.data() + b * width;
    for (int64_t i = 0; i < width; ++i) {
      if (cell.inputBias) in[i] += cell.inputBias[i];
      if (cell.hiddenBias) rec[i] += cell.hiddenBias[i];
    }
    for (int64_t i = 0; i < size; ++i) {
      float& state = h[b * size + i];
      switch (cell.kind) {
        case CellKind::Lstm: {
          float& memory = c[b * size + i];
          const float input = sigmoidOf(in[i] + rec[i]), forget = sigmoidOf(in[size + i] + rec[size + i]);
          const float candidate = std::tanh(in[2 * size + i] + rec[2 * size + i]);
          const float output = sigmoidOf(in[3 * size + i] + rec[3 * size + i]);
          memory = forget * memory + input * candidate;
          state = output * std::tanh(memory);
          break;
        }
        case CellKind::Gru: {
          const float reset = sigmoidOf(in[i] + rec[i]), update = sigmoidOf(in[size + i] + rec[size + i]);
          const float candidate = std::tanh(in[2 * size + i] + reset * rec[2 * size + i]);
          state = (state - candidate) * update + candidate;
          break;
        }
        case CellKind::Tanh:
          state = std::tanh(in[i] + rec[i]);
          break;
        case CellKind::Relu:
          state = maximumOf(in[i] + rec[i], 0.0f);
          break;
      }
    }
  }
  return {};
}

Status requireFloats(const Call& call) {
  for (size_t i = 0; i < call.numOperands(); ++i) {
    if (call.present(i) && call.operand(i).dtype() != DType::Float32)
      return unsupportedType(call.operand(i).dtype());
  }
  return {};
}

/// Converts [time, batch, features] to [batch, time, features] or vice versa.
Tensor swapLeading(const Tensor& tensor) {
  Tensor result = Tensor::uninitialized(tensor.dtype(), {tensor.dim(1), tensor.dim(0), tensor.dim(2)});
  const float* in = tensor.as<float>().data();
  float* out = result.mutableAs<float>().data();
  const int64_t a = tensor.dim(0), b = tensor.dim(1), n = tensor.dim(2);
  for (int64_t i = 0; i < a; ++i) {
    for (int64_t j = 0; j < b; ++j) std::copy_n(in + (i * b + j) * n, n, out + (j * a + i) * n);
  }
  return result;
}

/// All layers and directions; a layer's input is the concatenated outputs of the preceding layer's
/// directions.
Result<Kernel> prepareLayers(const ir::Node& node) {
  const Arguments a(node);
  const CellKind kind = kindOf(node.opName());
  const bool biases = a.boolean("has_biases"), batchFirst = a.boolean("batch_first");
  const int64_t layers = a.integer("num_layers"), directions = a.boolean("bidirectional") ? 2 : 1;
  return Kernel([=](Call& call) -> Status {
    CARINA_RETURN_IF_ERROR(requireFloats(call));
    const size_t states = kind == CellKind::Lstm ? 2 : 1, firstParameter = 1 + states;
    const size_t cells = static_cast<size_t>(layers * directions), plain = biases ? 4 : 2;
    const size_t each = (call.numOperands() - firstParameter) / cells;  // one more if there is a projection
    Tensor layer = batchFirst ? swapLeading(call.operand(0)) : call.operand(0);
    Tensor hidden = call.operand(1), memory = states == 2 ? call.operand(2) : Tensor();
    const int64_t time = layer.dim(0), batch = layer.dim(1), size = hidden.dim(2);
    const int64_t inner = states == 2 ? memory.dim(2) : size;
    float* h = hidden.mutableAs<float>().data();
    float* c = states == 2 ? memory.mutableAs<float>().data() : nullptr;
    std::vector<float> fromInput, fromHidden;
    for (int64_t l = 0; l < layers; ++l) {
      Tensor next = Tensor::uninitialized(DType::Float32, {time, batch, directions * size});
      float* out = next.mutableAs<float>().data();
      for (int64_t d = 0; d < directions; ++d) {
        const int64_t index = l * directions + d;
        const size_t at = firstParameter + static_cast<size_t>(index) * each;
        const auto parameter = [&](size_t i) {
          return i < plain ? call.operand(at + i).as<float>().data() : nullptr;
        };
        Cell cell{kind,         parameter(0), parameter(1), parameter(2), parameter(3),
                  layer.dim(2), inner,        nullptr,      size};
        if (each > plain) cell.projection = call.operand(at + plain).as<float>().data();
        float* state = h + index * batch * size;
        for (int64_t s = 0; s < time; ++s) {
          const int64_t t = d == 0 ? s : time - 1 - s;
          CARINA_RETURN_IF_ERROR(step(cell, batch, layer.as<float>().data() + t * batch * layer.dim(2), state,
                                      c ? c + index * batch * inner : nullptr, fromInput, fromHidden));
          for (int64_t b = 0; b < batch; ++b) {
            std::copy_n(state + b * size, size, out + ((t * batch + b) * directions + d) * size);
          }
        }
      }
      layer = std::move(next);
    }
    call.result(0) = batchFirst ? swapLeading(layer) : layer;
    call.result(1) = std::move(hidden);
    if (states == 2) call.result(2) = std::move(memory);
    return {};
  });
}

Result<Kernel> prepareCell(const ir::Node& node) {
  const CellKind kind = kindOf(node.opName());
  return Kernel([kind](Call& call) -> Status {
    CARINA_RETURN_IF_ERROR(requireFloats(call));
    Tensor hidden = call.operand(1), memory = kind == CellKind::Lstm ? call.operand(2) : Tensor();
    const auto parameter = [&](size_t i) {
      const Tensor* tensor = call.named(i);
      return tensor ? tensor->as<float>().data() : nullptr;
    };
    const Tensor& x = call.operand(0);
    const Cell cell{
        kind, parameter(2), parameter(3), parameter(4), parameter(5), x.dim(1), hidden.dim(1), nullptr, 0};
    std::vector<float> fromInput, fromHidden;
    CARINA_RETURN_IF_ERROR(step(cell, x.dim(0), x.as<float>().data(), hidden.mutableAs<float>().data(),
                                kind == CellKind::Lstm ? memory.mutableAs<float>().data() : nullptr,
                                fromInput, fromHidden));
    call.result(0) = std::move(hidden);
    if (kind == CellKind::Lstm) call.result(1) = std::move(memory);
    return {};
  });
}

constexpr KernelEntry kRecurrentKernels[] = {
    {"aten.lstm.input", prepareLayers},          {"aten.gru.input", prepareLayers},
    {"aten.rnn_tanh.input", prepareLayers},      {"aten.rnn_relu.input", prepareLayers},
    {"aten.lstm_cell.default", prepareCell},     {"aten.gru_cell.default", prepareCell},
    {"aten.rnn_tanh_cell.default", prepareCell}, {"aten.rnn_relu_cell.default", prepareCell},
};

}  // namespace

std::span<const KernelEntry> recurrentKernels() {
  return kRecurrentKernels;
}

}  // namespace carina::aten
