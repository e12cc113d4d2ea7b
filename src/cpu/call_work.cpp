// SPDX-License-Identifier: Apache-2.0
#include "cpu/call_work.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "cpu/call_arguments.hpp"
#include "cpu/known_turns.hpp"

namespace carina::cpu {
namespace {

constexpr int64_t kChunk = 32;       // runtime/kernels/stream.hpp
constexpr double kMostBytes = 1e15;  // of one run, whatever a program claims

double chunksOf(double runs, double length) {
  const int64_t chunks = (static_cast<int64_t>(length) + kChunk - 1) / kChunk;
  return runs * static_cast<double>(chunks);
}

/// Instructions of newlib's memcpy() for what is left of `bytes` after blocks of 64, and for addresses that
/// are not multiples of 4.
double leftOver(int64_t bytes, int64_t from, int64_t to) {
  constexpr double kSixteen = 10, kFour = 4, kBytes = 6, kOne = 4, kAlign = 9;
  double instructions = 0;
  if (from % 4 != 0 || to % 4 != 0) {
    if (bytes < 8) return bytes < 4 ? kBytes : kBytes + kOne * static_cast<double>(bytes - 3);
    instructions = kOne;
    if (from % 4 != 0 && to % 4 != 0) {
      bytes -= 4 - to % 4;
      instructions = kAlign;
    }
  }
  bytes %= 64;
  const int64_t sixteens = bytes / 16, fours = bytes % 16 / 4;
  return instructions + kSixteen * static_cast<double>(sixteens) + kFour * static_cast<double>(fours) +
         (bytes % 4 != 0 ? kBytes : 0);
}

/// The sum of these over the runs of a box that is moved, with an innermost loop of `bytes` bytes, elements
/// of `size` bytes, and both sides aligned.
double leftOver(const Loops& loops, int64_t bytes, int64_t size) {
  std::array<double, 16> runs{};  // by both addresses modulo 4
  runs[0] = 1;
  for (const auto& [times, steps] : loops.outer()) {
    std::array<double, 16> next{};
    const auto turns = static_cast<int64_t>(std::min(times, 4.0));
    for (int64_t turn = 0; turn < turns; ++turn) {
      // Every fourth iteration has the same addresses modulo 4.
      const double each = std::ceil((times - static_cast<double>(turn)) / 4);
      for (size_t at = 0; at < runs.size(); ++at) {
        const auto moved = [&](size_t before, int64_t step) {
          return static_cast<size_t>((static_cast<int64_t>(before) + turn * (scaled(step, size) & 3)) & 3);
        };
        next[moved(at / 4, steps[0]) * 4 + moved(at % 4, steps[1])] += each * runs[at];
      }
    }
    runs = next;
  }
  double sum = 0;
  for (size_t at = 0; at < runs.size(); ++at)
    sum += runs[at] * leftOver(bytes, static_cast<int64_t>(at / 4), static_cast<int64_t>(at % 4));
  return sum;
}

/// A window along one dimension.
struct Window {
  int64_t size = 1, outputs = 1, kernel = 1, stride = 1, padding = 0, dilation = 1;
  bool transposed = false;

  /// Kernel elements within the input, over all outputs.
  double taps() const {
    // Beyond this many, losses at the borders are negligible.
    constexpr double kMost = 1 << 20;
    const double all = static_cast<double>(outputs) * static_cast<double>(kernel);
    if (outputs <= 0 || kernel <= 0) return 0;
    if (all > kMost) return transposed ? all / static_cast<double>(std::max<int64_t>(stride, 1)) : all;
    double within = 0;
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t k = 0; k < kernel; ++k) within += inside(o, k) ? 1 : 0;
    }
    return within;
  }

 private:
  bool inside(int64_t o, int64_t k) const {
    if (!transposed) {
      const int64_t at = o * stride - padding + k * dilation;
      return at >= 0 && at < size;
    }
    const int64_t at = o + padding - k * dilation;
    return at >= 0 && at % stride == 0 && at / stride < size;
  }
};

int64_t itemOf(const Ints& list, size_t i, int64_t otherwise) {
  if (list.empty()) return otherwise;
  const int64_t item = list[list.size() == 1 ? 0 : std::min(i, list.size() - 1)];
  return item < -(1 << 24) || item > 1 << 24 ? otherwise : item;
}

class Counter {
 public:
  Counter(const Reader& reader, CallWork& work) : reader_(reader), work_(work) {
    outputs_ = reader.outputs();
    out_ = outputs_.empty() ? nullptr : outputs_.front();
  }

  /// Dispatches by kernel; false if the arguments are not what the kernel accepts.
  bool count() {
    const std::string& name = work_.kernel;
    if (out_ == nullptr) return false;
    static const std::map<std::string_view, bool (Counter::*)()> kCounters{
        {"aten::mm.out", &Counter::product},
        {"aten::bmm.out", &Counter::product},
        {"aten::addmm.out", &Counter::addmm},
        {"aten::linear.out", &Counter::product},
        {"aten::convolution.out", &Counter::convolution},
        {"aten::max_pool2d_with_indices.out", &Counter::pool},
        {"aten::avg_pool2d.out", &Counter::pool},
        {"aten::_adaptive_avg_pool2d.out", &Counter::adaptivePool},
        {"aten::sum.IntList_out", &Counter::reduction},
        {"aten::mean.out", &Counter::reduction},
        {"aten::prod.int_out", &Counter::reduction},
        {"aten::amax.out", &Counter::reduction},
        {"aten::amin.out", &Counter::reduction},
        {"aten::any.out", &Counter::reduction},
        {"aten::any.dims_out", &Counter::reduction},
        {"aten::max.dim_max", &Counter::reduction},
        {"aten::min.dim_min", &Counter::reduction},
        {"aten::argmax.out", &Counter::reduction},
        {"aten::argmin.out", &Counter::reduction},
        {"aten::var.out", &Counter::reduction},
        {"aten::var.correction_out", &Counter::reduction},
        {"aten::var_mean.correction_out", &Counter::reduction},
        {"aten::mean.dtype_out", &Counter::wholeReduction},
        {"aten::prod.out", &Counter::wholeReduction},
        {"aten::max.unary_out", &Counter::wholeReduction},
        {"aten::min.unary_out", &Counter::wholeReduction},
        {"aten::any.all_out", &Counter::wholeReduction},
        {"aten::_softmax.out", &Counter::lines},
        {"aten::_log_softmax.out", &Counter::lines},
        {"aten::cumsum.out", &Counter::lines},
        {"aten::native_layer_norm.out", &Counter::normalization},
        {"aten::native_group_norm.out", &Counter::normalization},
        {"aten::_native_batch_norm_legit_no_training.out", &Counter::batchNorm},
        {"aten::permute_copy.out", &Counter::permutation},
        {"cortex_m::transpose.out", &Counter::permutation},
        {"aten::transpose_copy.int_out", &Counter::transposition},
        {"aten::t_copy.out", &Counter::transposition},
        {"aten::expand_copy.out", &Counter::expansion},
        {"aten::as_strided_copy.out", &Counter::strided},
        {"aten::repeat.out", &Counter::repetition},
        {"aten::flip.out", &Counter::reversal},
        {"aten::roll.out", &Counter::rolling},
        {"aten::pixel_shuffle.out", &Counter::shuffle},
        {"aten::pixel_unshuffle.out", &Counter::shuffle},
        {"aten::glu.out", &Counter::gate},
        {"aten::slice_copy.Tensor_out", &Counter::slice},
        {"aten::narrow_copy.out", &Counter::cut},
        {"aten::select_copy.int_out", &Counter::cut},
        {"aten::cat.out", &Counter::join},
        {"aten::stack.out", &Counter::join},
        {"aten::split_copy.Tensor_out", &Counter::parts},
        {"aten::split_with_sizes_copy.out", &Counter::parts},
        {"aten::unbind_copy.int_out", &Counter::parts},
        {"aten::constant_pad_nd.out", &Counter::constantPad},
        {"aten::upsample_nearest2d.vec_out", &Counter::upsampling},
        {"aten::upsample_bilinear2d.vec_out", &Counter::upsampling},
        {"aten::embedding.out", &Counter::rows},
        {"aten::index_select.out", &Counter::rows},
        {"aten::index_put.out", &Counter::put},
        {"aten::view_copy.out", &Counter::copy},
        {"executorch_prim::et_view.default", &Counter::copy},
        {"aten::_to_copy.out", &Counter::copy},
        {"aten::clone.out", &Counter::copy},
        {"aten::alias_copy.out", &Counter::copy},
        {"aten::detach_copy.out", &Counter::copy},
        {"aten::lift_fresh_copy.out", &Counter::copy},
        {"aten::squeeze_copy.dim_out", &Counter::copy},
        {"aten::squeeze_copy.dims_out", &Counter::copy},
        {"aten::unsqueeze_copy.out", &Counter::copy},
        {"dim_order_ops::_clone_dim_order.out", &Counter::copy},
        {"dim_order_ops::_to_dim_order_copy.out", &Counter::copy},
    };
    work_[Work::Call] = 1;
    const auto found = kCounters.find(name);
    if (found != kCounters.end()) return (this->*found->second)();
    return elementwise();
  }

  /// What is known about any call.
  void generic() {
    work_.counts = {};
    work_[Work::Call] = 1;
    double largest = 0, results = 0;
    for (size_t i = 0; i < reader_.count(); ++i) {
      for (const pte::Tensor* tensor : reader_.tensors(i)) largest = std::max(largest, elementsOf(*tensor));
    }
    for (const pte::Tensor* tensor : outputs_) results += elementsOf(*tensor);
    work_[Work::Element] = std::max(largest, results);
    work_[Work::Output] = results;
  }

 private:
  bool elementwise() {
    // Operands broadcast to the result; otherwise it is another kind of kernel.
    std::vector<const pte::Tensor*> operands;
    for (size_t i = 0; i + 1 < reader_.count(); ++i) {
      const pte::Tensor* operand = reader_.tensor(i);
      if (operand == nullptr) continue;
      if (!broadcasts(*operand)) return false;
      operands.push_back(operand);
    }
    if (operands.empty() || operands.size() > 3 || outputs_.size() != 1) return false;
    Loops loops;
    const pte::Tensor& shape = *out_;
    std::vector<Ints> steps;
    steps.reserve(operands.size());
    for (const pte::Tensor* operand : operands) steps.push_back(stridesOf(*operand));
    bool real = isReal(shape);
    for (const pte::Tensor* operand : operands) real = real || isReal(*operand);
    for (size_t m = 0; m < shape.sizes.size(); ++m) {
      const size_t d = m < shape.dimOrder.size() ? shape.dimOrder[m] : m;
      Ints here;
      for (size_t k = 0; k < operands.size(); ++k) {
        const size_t missing = shape.sizes.size() - operands[k]->sizes.size();
        const bool repeats = d < missing || operands[k]->sizes[d - missing] == 1;
        here.push_back(repeats ? 0 : steps[k][d - missing]);
      }
      loops.add(shape.sizes[d], here);
    }
    const double elements = loops.total();
    work_[Work::Element] = elements;
    work_[Work::Run] = loops.runs();
    work_[Work::Chunk] = chunksOf(loops.runs(), loops.inner());
    for (size_t k = 0; k < operands.size(); ++k) {
      if (!real || !isReal(*operands[k]) || loops.step(k, 0) != 1) work_[Work::Converted] += elements;
    }
    if (!real || !isReal(shape)) work_[Work::Stored] = elements;
    return true;
  }

  bool broadcasts(const pte::Tensor& operand) const {
    if (operand.sizes.size() > out_->sizes.size()) return false;
    const size_t missing = out_->sizes.size() - operand.sizes.size();
    for (size_t d = 0; d < operand.sizes.size(); ++d) {
      if (operand.sizes[d] != 1 && operand.sizes[d] != out_->sizes[d + missing]) return false;
    }
    return true;
  }

  bool dots(const pte::Tensor* input) {
    if (input == nullptr || input->sizes.empty()) return false;
    const int64_t depth = input->sizes.back();
    const double outputs = elementsOf(*out_);
    work_[Work::Output] = outputs;
    work_[Work::Mac] = outputs * static_cast<double>(depth);
    work_[Work::Tail] = outputs * static_cast<double>(depth % 4);
    return true;
  }
  bool product() { return dots(reader_.tensor(0)); }
  bool addmm() { return dots(reader_.tensor(1)); }

  bool convolution() {
    const pte::Tensor* input = reader_.tensor(0);
    const pte::Tensor* weight = reader_.tensor(1);
    if (input == nullptr || weight == nullptr) return false;
    const size_t rank = out_->sizes.size();
    if (rank < 3 || rank > 5 || input->sizes.size() != rank || weight->sizes.size() != rank) return false;
    const Ints stride = reader_.integers(3), padding = reader_.integers(4), dilation = reader_.integers(5);
    const bool transposed = reader_.boolean(6);
    if (transposed) work_.types += " transposed";
    const int64_t groups = std::max<int64_t>(reader_.integer(8).value_or(1), 1);
    double seen = 1, looked = 1, rows = 1;
    for (size_t d = 2; d < rank; ++d) {
      const size_t i = d - 2;
      const Window window{input->sizes[d],
                          out_->sizes[d],
                          weight->sizes[d],
                          std::max<int64_t>(itemOf(stride, i, 1), 1),
                          itemOf(padding, i, 0),
                          std::max<int64_t>(itemOf(dilation, i, 1), 1),
                          transposed};
      rows = seen * static_cast<double>(window.outputs);
      looked = rows * static_cast<double>(window.kernel);
      seen *= window.taps();
    }
    const double maps = static_cast<double>(out_->sizes[0]) * static_cast<double>(out_->sizes[1]);
    const double depth = static_cast<double>(input->sizes[1]) / static_cast<double>(groups);
    work_[Work::Output] = elementsOf(*out_);
    work_[Work::Run] = maps * rows;
    work_[Work::Tap] = maps * looked;
    work_[Work::Piece] = maps * seen;
    work_[Work::Mac] = maps * seen * depth;
    return true;
  }

  bool pool() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr || input->sizes.size() < 3 || input->sizes.size() != out_->sizes.size())
      return false;
    const Ints kernel = reader_.integers(1), padding = reader_.integers(3);
    Ints stride = reader_.integers(2);
    if (stride.empty()) stride = kernel;
    const Ints dilation = work_.kernel == "aten::avg_pool2d.out" ? Ints{1} : reader_.integers(4);
    double taps = elementsOf(*out_), rows = taps;
    for (size_t i = 0; i < 2; ++i) {
      const size_t d = out_->sizes.size() - 2 + i;
      const Window window{input->sizes[d],
                          out_->sizes[d],
                          itemOf(kernel, i, 1),
                          std::max<int64_t>(itemOf(stride, i, 1), 1),
                          itemOf(padding, i, 0),
                          std::max<int64_t>(itemOf(dilation, i, 1), 1),
                          false};
      const double each = out_->sizes[d] > 0 ? window.taps() / out_->sizes[d] : 0;
      taps *= each;
      if (i == 0) rows *= each;
    }
    work_[Work::Output] = elementsOf(*out_);
    work_[Work::Run] = rows;
    work_[Work::Tap] = taps;
    return true;
  }
  bool adaptivePool() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr) return false;
    const size_t rank = out_->sizes.size();
    if (rank < 2 || input->sizes.size() != rank || out_->sizes[rank - 2] <= 0) return false;
    const double outputs = elementsOf(*out_);
    work_[Work::Output] = outputs;
    work_[Work::Run] =
        outputs * std::ceil(static_cast<double>(input->sizes[rank - 2]) / out_->sizes[rank - 2]);
    work_[Work::Tap] = std::max(elementsOf(*input), outputs);
    return true;
  }

  bool reduce(const pte::Tensor& input, const std::vector<bool>& reduced) {
    const Ints steps = stridesOf(input);
    double length = 1, count = 1;
    int64_t step = 1;
    bool first = true, joins = true;
    for (size_t d = input.sizes.size(); d-- > 0;) {
      if (!reduced[d]) continue;
      const int64_t size = input.sizes[d];
      count *= static_cast<double>(size);
      if (size == 1) continue;
      joins = first || (joins && static_cast<double>(steps[d]) == static_cast<double>(step) * length);
      if (!joins) continue;
      if (first) step = steps[d];
      length *= static_cast<double>(size);
      first = false;
    }
    const double elements = elementsOf(input);
    const double runs = length > 0 ? elements / length : 0;
    work_[Work::Output] = count > 0 ? elements / count : elementsOf(*out_);
    work_[Work::Run] = runs;
    work_[Work::Chunk] = chunksOf(runs, length);
    work_[Work::Element] = elements;
    if (!isReal(input) || step != 1) work_[Work::Converted] = elements;
    return true;
  }
  bool reduction() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr) return false;
    const size_t rank = input->sizes.size();
    const Ints dims = reader_.integers(1);
    std::vector<bool> reduced(rank, dims.empty());
    for (const int64_t dim : dims) {
      const auto d = Reader::wrapped(dim, rank);
      if (!d || *d >= rank) return false;
      reduced[*d] = true;
    }
    return reduce(*input, reduced);
  }
  bool wholeReduction() {
    const pte::Tensor* input = reader_.tensor(0);
    return input != nullptr && reduce(*input, std::vector<bool>(input->sizes.size(), true));
  }

  bool lines() {
    const auto dim = reader_.dimension(1, out_->sizes.size());
    if (!dim) return false;
    const double elements = elementsOf(*out_);
    const double size = *dim < out_->sizes.size() ? out_->sizes[*dim] : 1;
    work_[Work::Run] = size > 0 ? elements / size : 0;
    work_[Work::Element] = elements;
    return true;
  }
  bool normalization() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr || outputs_.size() < 2) return false;
    work_[Work::Run] = elementsOf(*outputs_[1]);
    work_[Work::Element] = elementsOf(*input);
    return true;
  }
  bool batchNorm() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr || input->sizes.size() < 2) return false;
    work_[Work::Run] = input->sizes[1];
    work_[Work::Element] = elementsOf(*input);
    work_[Work::Piece] = linesOf(*input, 1);
    return true;
  }
  bool gate() {
    work_[Work::Element] = elementsOf(*out_);
    work_[Work::Piece] = linesOf(*out_, out_->sizes.size());
    return true;
  }
  /// Lines along the innermost dimension other than `without`, for kernels that visit positions one by one.
  static double linesOf(const pte::Tensor& tensor, size_t without) {
    for (size_t d = tensor.sizes.size(); d-- > 0;) {
      if (d != without && tensor.sizes[d] > 1) return elementsOf(tensor) / tensor.sizes[d];
    }
    return 0;
  }

  /// Moves a box; `from` and `to` are strides of its dimensions.
  void move(const std::vector<int32_t>& sizes, const Ints& from, const Ints& to, const pte::Tensor& source,
            double times = 1) {
    Loops loops;
    for (size_t d = 0; d < sizes.size(); ++d) loops.add(sizes[d], {from[d], to[d]});
    const double elements = times * loops.total();
    work_[Work::Piece] += times * loops.runs();
    if (source.type != out_->type) {
      work_[Work::Converted] += elements;
      work_[Work::Chunk] += times * chunksOf(loops.runs(), loops.inner());
    } else if (loops.step(0, 1) == 1 && loops.step(1, 1) == 1) {
      const int64_t size = pte::scalarTypeSize(source.type);
      const double each = loops.inner() * static_cast<double>(size);
      work_[Work::Byte] += times * loops.runs() * each;
      work_[Work::Tail] += times * leftOver(loops, static_cast<int64_t>(std::min(each, kMostBytes)), size);
    } else {
      work_[Work::Element] += elements;
    }
  }
  /// Runs of bytes that are moved unchanged, from aligned addresses.
  void bytes(double runs, double each) {
    work_[Work::Byte] += runs * each;
    work_[Work::Tail] += runs * leftOver(static_cast<int64_t>(std::min(each, kMostBytes)), 0, 0);
  }
  bool permute(const std::vector<size_t>& order) {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr || order.size() != out_->sizes.size() || order.size() != input->sizes.size())
      return false;
    const Ints own = stridesOf(*input);
    Ints from;
    for (const size_t d : order) {
      if (d >= own.size()) return false;
      from.push_back(own[d]);
    }
    move(out_->sizes, from, stridesOf(*out_), *input);
    return true;
  }
  bool permutation() {
    std::vector<size_t> order;
    for (const int64_t dim : reader_.integers(1)) {
      const auto d = Reader::wrapped(dim, out_->sizes.size());
      if (!d) return false;
      order.push_back(*d);
    }
    return permute(order);
  }
  bool transposition() {
    const size_t rank = out_->sizes.size();
    const bool matrix = work_.kernel == "aten::t_copy.out";
    const auto a = matrix ? std::optional<size_t>(0) : reader_.dimension(1, rank);
    const auto b = matrix ? std::optional<size_t>(rank > 1 ? 1 : 0) : reader_.dimension(2, rank);
    if (!a || !b || *a >= rank || *b >= rank) return false;
    std::vector<size_t> order;
    for (size_t d = 0; d < rank; ++d) order.push_back(d);
    std::swap(order[*a], order[*b]);
    return permute(order);
  }
  bool expansion() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr || !broadcasts(*input)) return false;
    const Ints own = stridesOf(*input);
    const size_t missing = out_->sizes.size() - own.size();
    Ints from;
    for (size_t d = 0; d < out_->sizes.size(); ++d) {
      const bool repeats = d < missing || input->sizes[d - missing] == 1;
      from.push_back(repeats ? 0 : own[d - missing]);
    }
    move(out_->sizes, from, stridesOf(*out_), *input);
    return true;
  }
  bool repetition() {
    const pte::Tensor* input = reader_.tensor(0);
    const Ints times = reader_.integers(1);
    const size_t rank = out_->sizes.size();
    if (input == nullptr || times.size() != rank || input->sizes.size() > rank) return false;
    const Ints own = stridesOf(*input), into = stridesOf(*out_);
    const size_t missing = rank - own.size();
    std::vector<int32_t> sizes;
    Ints from, to;
    for (size_t d = 0; d < rank; ++d) {
      const int32_t size = d < missing ? 1 : input->sizes[d - missing];
      sizes.insert(sizes.end(), {size > 0 ? out_->sizes[d] / size : 0, size});
      from.insert(from.end(), {0, d < missing ? 0 : own[d - missing]});
      to.insert(to.end(), {scaled(into[d], std::max(size, 1)), into[d]});
    }
    move(sizes, from, to, *input);
    return true;
  }
  bool reversal() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr || input->sizes.size() != out_->sizes.size()) return false;
    Ints from = stridesOf(*input);
    for (const int64_t dim : reader_.integers(1)) {
      const auto d = Reader::wrapped(dim, from.size());
      if (!d || *d >= from.size()) return false;
      from[*d] = scaled(from[*d], -1);
    }
    move(out_->sizes, from, stridesOf(*out_), *input);
    return true;
  }
  /// Two boxes for each dimension that is rolled.
  bool rolling() {
    const pte::Tensor* input = reader_.tensor(0);
    const Ints shifts = reader_.integers(1), dims = reader_.integers(2);
    const size_t rank = out_->sizes.size();
    if (input == nullptr || input->sizes.size() != rank || dims.empty() || dims.size() != shifts.size() ||
        rank > kMaxRolled)
      return false;
    std::vector<int32_t> by(rank, 0);
    for (size_t i = 0; i < dims.size(); ++i) {
      const auto d = Reader::wrapped(dims[i], rank);
      if (!d || *d >= rank || out_->sizes[*d] <= 0) return false;
      const int64_t size = out_->sizes[*d];
      by[*d] = static_cast<int32_t>((by[*d] + (shifts[i] % size + size) % size) % size);
    }
    work_[Work::Run] = static_cast<double>(size_t{1} << rank);
    for (size_t box = 0; box < size_t{1} << rank; ++box) {
      std::vector<int32_t> sizes(rank);
      for (size_t d = 0; d < rank; ++d) sizes[d] = (box >> d & 1) != 0 ? by[d] : out_->sizes[d] - by[d];
      if (std::count(sizes.begin(), sizes.end(), 0) == 0)
        move(sizes, stridesOf(*input), stridesOf(*out_), *input);
    }
    return true;
  }
  /// One of input and output is deep, the other one flat: channel c * r * r + i * r + j corresponds to
  /// channel c at (y * r + i, x * r + j).
  bool shuffle() {
    const pte::Tensor* input = reader_.tensor(0);
    const auto factor = reader_.integer(1);
    const size_t rank = out_->sizes.size();
    if (input == nullptr || !factor || *factor <= 0 || *factor > 1 << 15 || rank < 3 ||
        input->sizes.size() != rank)
      return false;
    const bool toFlat = work_.kernel == "aten::pixel_shuffle.out";
    const pte::Tensor &deep = toFlat ? *input : *out_, &flat = toFlat ? *out_ : *input;
    const auto r = static_cast<int32_t>(*factor);
    const Ints inDeep = stridesOf(deep), inFlat = stridesOf(flat);
    const size_t c = rank - 3, y = rank - 2, x = rank - 1;
    std::vector<int32_t> sizes(deep.sizes.begin(), deep.sizes.begin() + static_cast<ptrdiff_t>(c));
    Ints deepSteps(inDeep.begin(), inDeep.begin() + static_cast<ptrdiff_t>(c)),
        flatSteps(inFlat.begin(), inFlat.begin() + static_cast<ptrdiff_t>(c));
    sizes.insert(sizes.end(), {flat.sizes[c], deep.sizes[y], r, deep.sizes[x], r});
    const int64_t row = scaled(inDeep[c], r);
    deepSteps.insert(deepSteps.end(), {scaled(row, r), inDeep[y], row, inDeep[x], inDeep[c]});
    flatSteps.insert(flatSteps.end(),
                     {inFlat[c], scaled(inFlat[y], r), inFlat[y], scaled(inFlat[x], r), inFlat[x]});
    move(sizes, toFlat ? deepSteps : flatSteps, toFlat ? flatSteps : deepSteps, *input);
    return true;
  }
  bool strided() {
    const pte::Tensor* input = reader_.tensor(0);
    const Ints steps = reader_.integers(2);
    if (input == nullptr || steps.size() != out_->sizes.size()) return false;
    move(out_->sizes, steps, stridesOf(*out_), *input);
    return true;
  }
  bool slice() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr || input->sizes.size() != out_->sizes.size()) return false;
    const auto dim = reader_.dimension(1, input->sizes.size());
    if (!dim || *dim >= input->sizes.size()) return false;
    Ints from = stridesOf(*input);
    from[*dim] *= std::clamp<int64_t>(reader_.integer(4).value_or(1), 1, int64_t{1} << 31);
    move(out_->sizes, from, stridesOf(*out_), *input);
    return true;
  }
  /// The result is a part of the input along the dimension in argument 1, or lacks that dimension.
  bool cut() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr) return false;
    const auto dim = reader_.dimension(1, input->sizes.size());
    return dim && part(*input, *out_, *dim, *input);
  }
  bool part(const pte::Tensor& whole, const pte::Tensor& piece, size_t dim, const pte::Tensor& source) {
    const bool lacks = piece.sizes.size() + 1 == whole.sizes.size();
    if ((!lacks && piece.sizes.size() != whole.sizes.size()) || dim >= whole.sizes.size()) return false;
    Ints steps = stridesOf(whole);
    if (lacks) steps.erase(steps.begin() + static_cast<ptrdiff_t>(dim));
    move(piece.sizes, steps, stridesOf(piece), source);
    return true;
  }
  bool join() {
    const auto dim = reader_.dimension(1, out_->sizes.size());
    if (!dim) return false;
    for (const pte::Tensor* piece : reader_.tensors(0)) {
      if (piece->sizes.size() == 1 && piece->sizes[0] == 0) continue;
      if (!part(*out_, *piece, *dim, *piece)) return false;
    }
    return true;
  }
  bool parts() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr) return false;
    const size_t at = work_.kernel == "aten::unbind_copy.int_out" ? 1 : 2;
    const auto dim = reader_.dimension(at, input->sizes.size());
    if (!dim) return false;
    for (const pte::Tensor* piece : outputs_) {
      if (!part(*input, *piece, *dim, *input)) return false;
    }
    return true;
  }
  bool constantPad() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr || input->sizes.size() != out_->sizes.size()) return false;
    std::vector<int32_t> kept;
    for (size_t d = 0; d < input->sizes.size(); ++d)
      kept.push_back(std::min(input->sizes[d], out_->sizes[d]));
    move(kept, stridesOf(*input), stridesOf(*out_), *input);
    work_[Work::Stored] = elementsOf(*out_);
    return true;
  }
  bool upsampling() {
    if (out_->sizes.size() != 4) return false;
    const double planes = static_cast<double>(out_->sizes[0]) * out_->sizes[1];
    work_[Work::Piece] = planes > 0 ? elementsOf(*out_) / planes : 0;
    work_[Work::Element] = elementsOf(*out_);
    return true;
  }
  bool rows() {
    const bool embedding = work_.kernel == "aten::embedding.out";
    const pte::Tensor* index = reader_.tensor(embedding ? 1 : 2);
    if (index == nullptr) return false;
    const double count = elementsOf(*index), elements = elementsOf(*out_);
    work_[Work::Run] = count;
    if (embedding) {
      bytes(count, elements / std::max(count, 1.0) * static_cast<double>(pte::scalarTypeSize(out_->type)));
      return true;
    }
    const auto dim = reader_.dimension(1, out_->sizes.size());
    if (!dim || *dim >= out_->sizes.size()) return false;
    // Boxes around the dimension: outer ones one by one, the inner one contiguously.
    double outer = 1;
    for (size_t d = 0; d < *dim; ++d) outer *= out_->sizes[d];
    const bool lies = *dim + 1 < out_->sizes.size();
    work_[Work::Piece] = count * (lies ? outer : 1);
    if (lies)
      bytes(work_[Work::Piece], elements / std::max(work_[Work::Piece], 1.0) *
                                    static_cast<double>(pte::scalarTypeSize(out_->type)));
    else
      work_[Work::Element] = elements;
    return true;
  }
  /// What is written, element by element; the rest is copied unless it is already in place.
  bool put() {
    const pte::Tensor* values = reader_.tensor(2);
    if (values == nullptr) return false;
    work_[Work::Element] = elementsOf(*values);
    if (!reader_.isSame(0, 4))
      bytes(1, elementsOf(*out_) * static_cast<double>(pte::scalarTypeSize(out_->type)));
    return true;
  }
  bool copy() {
    const pte::Tensor* input = reader_.tensor(0);
    if (input == nullptr) return false;
    const double elements = elementsOf(*out_);
    Ints from = stridesOf(*input), to = stridesOf(*out_);
    if (input->sizes == out_->sizes) {
      move(out_->sizes, from, to, *input);
      return true;
    }
    work_[Work::Piece] = 1;
    if (input->type != out_->type) {
      work_[Work::Converted] = elements;
      work_[Work::Chunk] = chunksOf(1, elements);
    } else {
      bytes(1, elements * static_cast<double>(pte::scalarTypeSize(out_->type)));
    }
    return true;
  }

  static constexpr size_t kMaxRolled = 8;  // there are two to the power of this many boxes

  const Reader& reader_;
  CallWork& work_;
  std::vector<const pte::Tensor*> outputs_;
  const pte::Tensor* out_ = nullptr;
};

}  // namespace

const std::array<std::string_view, kWorks> kWorkNames{"call",      "element", "chunk",  "run",
                                                      "converted", "stored",  "output", "mac",
                                                      "tail",      "tap",     "piece",  "byte"};

CallWork workOf(const pte::Method& method, const pte::KernelCall& call) {
  CallWork work;
  if (call.op >= 0 && static_cast<size_t>(call.op) < method.operators.size())
    work.kernel = method.operators[static_cast<size_t>(call.op)].str();
  const Reader reader(method, call);
  const pte::Tensor* first = nullptr;
  for (size_t i = 0; i < reader.count() && first == nullptr; ++i) {
    const auto tensors = reader.tensors(i);
    if (!tensors.empty()) first = tensors.front();
  }
  const auto outputs = reader.outputs();
  if (first != nullptr) work.types = pte::scalarTypeName(first->type);
  if (first != nullptr && !outputs.empty() && outputs.front()->type != first->type)
    work.types += ">" + pte::scalarTypeName(outputs.front()->type);
  Counter counter(reader, work);
  if (!counter.count()) counter.generic();
  return work;
}

CallWork callingWork(const pte::Method& method, const pte::Instruction& instruction) {
  CallWork work;
  work.kernel = "(calls)";
  work[Work::Run] = 1;
  const auto* call = std::get_if<pte::DelegateCall>(&instruction);
  if (call == nullptr) return work;
  work[Work::Output] = 1;
  work[Work::Piece] = static_cast<double>(call->arguments.size());
  for (const int32_t argument : call->arguments) {
    if (argument < 0 || static_cast<size_t>(argument) >= method.values.size()) continue;
    const auto* tensor = std::get_if<pte::Tensor>(&method.values[static_cast<size_t>(argument)]);
    if (tensor != nullptr) work[Work::Byte] += static_cast<double>(pte::tensorBytes(*tensor).value_or(0));
  }
  return work;
}

CallWork callingWork(const pte::Method& method) {
  CallWork work;
  work.kernel = "(calls)";
  work[Work::Call] = 1;
  for (const pte::Chain& chain : method.chains) {
    const std::vector<double> turns = knownTripCounts(method, chain);
    for (size_t i = 0; i < chain.instructions.size(); ++i) {
      const CallWork once = callingWork(method, chain.instructions[i]);
      for (size_t w = 0; w < kWorks; ++w) work.counts[w] += turns[i] * once.counts[w];
    }
  }
  return work;
}

}  // namespace carina::cpu
