// SPDX-License-Identifier: Apache-2.0
// The state of one legalization, shared by the files of this folder: which npu value represents which TOSA
// value, which operations computed it, and what may still be fused into them.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/dialect/coded_weights.hpp"
#include "compiler/dialect/npu_ir.hpp"
#include "compiler/legalize/wide_functions.hpp"
#include "compiler/legalize/wide_tables.hpp"
#include "compiler/storage/strided_copy.hpp"
#include "npu/targets/target.hpp"
#include "tosa/tosa.hpp"

namespace carina::compiler {

/// Limits of the hardware's windows, dilation included, and of the axes of feature maps.
constexpr int64_t kMaxKernelHeight = 64, kMaxKernelArea = 4096, kMaxDilation = 2, kMaxAxis = 65536;
constexpr int64_t kMaxPadBefore = 127, kMaxPadAfter = 128;

/// The only element of a constant operand.
int64_t constantValue(const ir::Value* value);
/// All elements of a constant operand.
ir::Ints constantValues(const ir::Value* value);

/// The parameters of a RESCALE: per tensor or per channel of the last dimension.
struct RescaleNumbers {
  ir::Ints multipliers, shifts;
  int64_t inputZeroPoint = 0, outputZeroPoint = 0;
  npu_ir::Rounding rounding = npu_ir::Rounding::NATURAL;
  DType inputType = DType::Int8, outputType = DType::Int8;  // unsigned if the attributes say so

  bool perChannel() const { return multipliers.size() > 1; }
  /// The (per-tensor) scale if it is an integer.
  std::optional<int64_t> wholeFactor() const;
};
RescaleNumbers rescaleNumbers(const tosa::Rescale& node);
/// Removes common factors of two from multiplier and shift; never across the shift at which double rounding
/// begins.
void reduceScale(int64_t& multiplier, int64_t& shift, npu_ir::Rounding rounding);

class Legalizer {
 public:
  Legalizer(const ir::Graph& graph, const npu::Target& target)
      : tosa_(graph),
        target_(target),
        builder_(result_),
        bytes_(graph),
        functions_(graph),
        tables_(graph, functions_, bytes_) {
    bytes_.addInputs(readByParts_);
    functions_.addInputs(readByParts_);
    tables_.addInputs(readByParts_);
  }

  Result<ir::Graph> run();

 private:
  // Values (legalize.cpp)
  // ------------------------------------------------------------------------------------------
  /// The npu value with the type and shape of a TOSA value; lowers deferred operators.
  Result<ir::Value*> get(const ir::Value* value);
  /// Records the npu value (any shape with the right elements) of a TOSA value and the operations that
  /// computed it.
  void define(const ir::Value* value, ir::Value* npu, std::vector<ir::Node*> operations = {});
  /// Whether nothing but its single use reads a TOSA value, whose operations may therefore compute the use.
  bool hasOneReader(const ir::Value* value) const {
    return value->hasOneUse() && !readByParts_.contains(value);
  }
  /// The operations of a TOSA value with a single use: their output stage may be changed.
  std::vector<ir::Node*>* fusable(const ir::Value* value);
  /// Changes the type of a value and of its pieces.
  void retype(ir::Value* value, DType type);
  const npu::Architecture& npu() const { return target_.architecture(); }
  ir::Value* constant(Tensor tensor) { return result_.addConstant(std::move(tensor)); }
  ir::Value* scalarConstant(DType type, int64_t value);

  Status lower(ir::Node* node);
  Status dispatch(ir::Node* node);
  bool isPutOff(const ir::Node* node) const;

  // Shapes
  // ---------------------------------------------------------------------------------------------------------
  /// One image of a [N,H,W,C] value as [H,W,C].
  ir::Value* image(ir::Value* value, int64_t n);
  /// Joins images [H,W,C] to [N,H,W,C].
  ir::Value* images(const std::vector<ir::Value*>& parts);
  /// A value of any rank as one feature map, elements in order; nothing if no split into axes fits 65536.
  Result<ir::Value*> asMap(ir::Value* value);

  // Operators
  // ------------------------------------------------------------------------------------------------------
  Status lowerConv2d(const tosa::Conv2d& node);
  Status lowerDepthwise(const tosa::DepthwiseConv2d& node);
  Status lowerConv3d(const tosa::Conv3d& node);
  Status lowerTransposeConv2d(const tosa::TransposeConv2d& node);
  Status lowerAvgPool(const tosa::AvgPool2d& node);
  /// Whether pooling can compute a depthwise convolution: one with weights of one whose sums become 8 bits at
  /// one scale.
  bool isScaledSum(const tosa::DepthwiseConv2d& node) const;
  Status lowerScaledSum(const tosa::DepthwiseConv2d& node);
  Status lowerMaxPool(const tosa::MaxPool2d& node);
  Status lowerRescale(const tosa::Rescale& node);
  Status lowerClamp(const tosa::Clamp& node);
  Status lowerTable(const tosa::Table& node);
  /// Adds the table of `stage` to the operations that compute the input if nothing else reads that (`alone`),
  /// else in an operation of its own.
  Status lookUp(const ir::Value* output, const ir::Value* input, bool alone,
                const npu_ir::OutputStage& stage);
  Status lowerByteFunction(const ir::Node& node, const ByteFunctionMatch& match);
  Status lowerWideTable(const ir::Node& node, const WideTableMatch& match);
  Status lowerWideFunction(const ir::Node& node, const WideFunctionMatch& match);
  Status lowerCast(ir::Node* node);
  Status lowerBinary(ir::Node* node, npu_ir::ElementwiseMode mode);
  Status lowerMul(ir::Node* node);
  Status lowerUnary(ir::Node* node, npu_ir::ElementwiseMode mode);
  Status lowerNegate(ir::Node* node);
  Status lowerComparison(ir::Node* node, npu_ir::ElementwiseMode mode);
  Status lowerLogical(ir::Node* node, npu_ir::ElementwiseMode mode);
  Status lowerLogicalNot(ir::Node* node);
  Status lowerSelect(ir::Node* node);
  Status lowerBitwise(ir::Node* node, npu_ir::ElementwiseMode mode);
  Status lowerBitwiseNot(ir::Node* node);
  Status lowerShift(ir::Node* node);
  Status lowerMatmul(ir::Node* node);
  Status lowerReduceSum(ir::Node* node);
  Status lowerReduceExtremum(ir::Node* node, bool maximum);
  Status lowerReduceBool(ir::Node* node, bool all);
  Status lowerArgmax(ir::Node* node);
  Status lowerReshape(ir::Node* node);
  Status lowerTranspose(ir::Node* node);
  Status lowerConcat(ir::Node* node);
  /// The earlier CONCAT with the most operands that are the first operands of this one, or null.
  const ir::Node* longestBeginning(const ir::Node* node);
  Status lowerSlice(ir::Node* node);
  Status lowerPad(ir::Node* node);
  Status lowerTile(ir::Node* node);
  Status lowerReverse(ir::Node* node);
  Status lowerGather(ir::Node* node);
  Status lowerScatter(ir::Node* node);
  Status lowerResize(ir::Node* node);

  // Convolution (conv.cpp)
  // --------------------------------------------------------------------------------
  struct Convolution {
    ir::Value* ifm = nullptr;  // [H,W,C]
    Tensor weight;             // OHWI, depthwise HWC
    Tensor bias;               // one per output channel
    npu_ir::Window window;
    int64_t weightZeroPoint = 0;
    bool depthwise = false;
    DType type = DType::Int32;
  };
  /// Emits a convolution, decomposing what the hardware's window does not support. `operations` receives
  /// those that compute the result.
  Result<ir::Value*> convolve(Convolution conv, std::vector<ir::Node*>& operations);
  /// Each image of the batch with its own copy of `conv`.
  Status convolveImages(ir::Value* output, ir::Value* input, const Convolution& conv);
  /// A convolution of any dilation as convolutions over every n-th position of its input (dilation.cpp).
  Result<ir::Value*> dilated(Convolution conv, std::vector<ir::Node*>& operations);
  /// Removes taps that only see padding.
  static void cutIdleTaps(Convolution& conv);
  /// Number of output positions of the window along an axis with `size` input positions.
  static int64_t outputPositions(const npu_ir::Window& w, size_t axis, int64_t size);
  /// Step between the input positions of one partial convolution, such that the hardware's dilation does the
  /// rest.
  static int64_t phaseStep(const npu_ir::Window& w, size_t axis, bool line);
  /// Every window copied out as the channels of its output position: any kernel, stride, dilation.
  Result<ir::Value*> gatheredWindows(Convolution conv, std::vector<ir::Node*>& operations);
  Status checkConvolution(const Convolution& conv) const;

  // Beyond the hardware's sizes (large.cpp)
  // -------------------------------------------------------------------------
  /// Whether a kernel with its dilation fits the hardware's window.
  static bool fitsWindow(const ir::Ints& kernel, const ir::Ints& dilation);
  /// A convolution over a map whose channels hold neighbouring positions, with fewer kernel positions.
  Result<ir::Value*> folded(Convolution conv, std::vector<ir::Node*>& operations);
  /// A convolution along the height of a single-column map, as one along the width.
  Result<ir::Value*> asLine(Convolution conv, std::vector<ir::Node*>& operations);
  /// At most `most` output channels at a time. `diagonal`: a depthwise convolution as ordinary ones.
  Result<ir::Value*> channelByChannel(const Convolution& conv, int64_t most, bool diagonal,
                                      std::vector<ir::Node*>& operations);
  /// A 1x1 kernel over more than 65536 channels.
  Result<ir::Value*> deepAsColumns(Convolution conv, std::vector<ir::Node*>& operations);
  /// A convolution over parts of an axis longer than 65536.
  Result<ir::Value*> tiled(Convolution conv, size_t axis, std::vector<ir::Node*>& operations);
  /// An elementwise operation: on the value as one feature map or, if it does not fit axes of at most 65536,
  /// on parts. The result has the value's shape.
  Result<ir::Value*> perMap(ir::Value* value,
                            const std::function<Result<ir::Value*>(ir::Value* map)>& operation);
  /// [outer, size, inner] -> [outer, 1, inner]: `reduce` if all axes fit, else on parts, which `combine`
  /// joins along `size`.
  Result<ir::Value*> reducedInParts(ir::Value* map,
                                    const std::function<Result<ir::Value*>(ir::Value*)>& reduce,
                                    const std::function<Result<ir::Value*>(ir::Value*, ir::Value*)>& combine);

  // Pools (pool.cpp)
  // -------------------------------------------------------------------------
  /// The average over windows that exceed the hardware's; without padding.
  Result<ir::Value*> largeAverage(ir::Value* map, const ir::Ints& kernel, const ir::Ints& stride,
                                  int64_t inputZero, int64_t outputZero);
  /// Max pooling of one image, windows and padding (top, left, bottom, right) of any size. `operations`
  /// receives the one that computes the result, if it is a single one.
  Result<ir::Value*> pooledMax(ir::Value* map, const ir::Ints& kernel, const ir::Ints& stride,
                               const ir::Ints& pad, std::vector<ir::Node*>& operations);
  /// The maximum of each window along one axis of an image; without padding.
  Result<ir::Value*> largestAlong(ir::Value* map, size_t axis, int64_t kernel, int64_t stride);

  // Elementwise (elementwise.cpp)
  // -------------------------------------------------------------------------
  /// An operand as it is read: 8 or 16-bit with zero point and scale, or a plain value.
  struct Operand {
    ir::Value* value = nullptr;
    int64_t zeroPoint = 0;
    int64_t multiplier = 1, shift = 0;
    bool doubleRound = false;  // scaled as TFLite scales operands of sums: see npu_ir.hpp
    bool unit() const { return shift < 62 && multiplier == int64_t{1} << shift; }
    int64_t bits() const { return 8 * dtypeSize(value->dtype()); }
  };
  /// What a RESCALE to int32 reads, if an elementwise operation may read it directly.
  Result<std::optional<Operand>> rescaledOperand(const ir::Value* value);
  /// The same for TFLite's form: a value shifted up, then rescaled by a RESCALE that rounds twice.
  Result<std::optional<Operand>> doublyRescaledOperand(const ir::Value* value);
  /// A scalar constant as an operand of the same type as `other`, with a scale.
  std::optional<Operand> scalarOperandFor(const Operand& other, const ir::Value* value);
  /// A scalar constant, or a wide constant that is codes at one scale, as an operand next to `other`.
  std::optional<Operand> constantOperandFor(const Operand& other, const ir::Value* value);
  /// An int32 constant as codes of the type of `other`, minus a zero point, if there are such codes.
  std::optional<Operand> codesOperandFor(const Operand& other, const ir::Value* value);
  /// A product with one constant per channel as a depthwise convolution, if that is faster on the target.
  std::optional<Convolution> channelProduct(const Operand& a, const Operand& b, const Shape& shape);
  /// A value extended on one side of one axis.
  struct Padding {
    const ir::Value* inner = nullptr;
    size_t axis = 0;
    int64_t before = 0;
  };
  /// How an operand of a sum is padded with the code `zeroPoint`, which represents 0. Nothing if it is not,
  /// or if something else reads it as well.
  std::optional<Padding> paddingOf(const ir::Value* operand, int64_t zeroPoint) const;
  /// A sum with a padded operand as one sum with the unpadded operand and one with zeros, so that the padded
  /// value is not computed. Null if neither operand is such a value.
  Result<ir::Value*> sumAroundPadding(const ir::Node& node, npu_ir::ElementwiseMode mode, const Operand& a,
                                      const Operand& b, std::vector<ir::Node*>& operations);
  /// The RESCALE that is the only use of the value, if it is one.
  std::optional<RescaleNumbers> consumingRescale(const ir::Value* value) const;
  /// Emits an elementwise operation on operands of equal rank with broadcasting, in as many operations as the
  /// shapes need.
  Result<ir::Value*> elementwise(npu_ir::ElementwiseMode mode, const Operand& a, const Operand& b,
                                 const npu_ir::OutputStage& stage, DType type,
                                 std::vector<ir::Node*>* nodes = nullptr);
  Result<ir::Value*> elementwise(npu_ir::ElementwiseMode mode, ir::Value* a, ir::Value* b, DType type,
                                 const npu_ir::OutputStage& stage = {},
                                 std::vector<ir::Node*>* nodes = nullptr);
  /// a * multiplier >> shift for the values of a 32-bit operation.
  Result<ir::Value*> scale32(ir::Value* value, const RescaleNumbers& numbers, const Shape& shape);
  /// The value minus a zero point as int32, times a factor of the value's type.
  Result<ir::Value*> widen(ir::Value* value, int64_t zeroPoint, int64_t factor = 1);
  /// Defines `output` as the value passed through an output stage.
  Status defineCopies(const ir::Value* output, ir::Value* value, int64_t zeroPoint,
                      const npu_ir::OutputStage& stage, DType type);
  /// An int16 map through a table of 513 entries, as int32, by operations of Ethos-U55 and U65.
  Result<ir::Value*> interpolated(ir::Value* map, const Tensor& entries);

  // Logic and bits (logic.cpp)
  // ------------------------------------------------------------------------------------
  /// An output stage that ends in a table of 256 int8 entries.
  npu_ir::OutputStage tableStage(Tensor table);
  /// An output stage whose int8 result is 1 where the saturated value is zero (isZero), or where it is not.
  npu_ir::OutputStage testZero(bool isZero);
  /// One number where a condition holds, another where it does not, of the condition's shape. Null if no
  /// single operation gives that: a computed condition, wider than int8, and numbers that differ by more than
  /// 1.
  Result<ir::Value*> numberFor(ir::Value* condition, DType type, int64_t whenTrue, int64_t whenFalse);
  /// select() between `other` and a number, which is chosen where the condition is `when`, in one operation
  /// on all elements: the minimum or maximum of `other` and a limit, or `other` masked. Null if the number is
  /// neither 0 nor a limit of the type.
  Result<ir::Value*> selectNumber(ir::Value* condition, int64_t number, bool when, ir::Value* other,
                                  DType type);
  /// 1 where the value is nonzero, else 0, as int8.
  Result<ir::Value*> truthOf(ir::Value* value);
  /// An int8 value through a table of 256 int8 entries.
  Result<ir::Value*> lookedUp(ir::Value* value, Tensor table);
  /// The bytes of a value: one more dimension for types wider than a byte.
  ir::Value* bytesOf(ir::Value* value);
  /// Bytes in memory as a value of a type and shape.
  ir::Value* fromBytes(ir::Value* bytes, DType type, const Shape& shape);
  /// The low bytes of each element.
  ir::Value* lowBytes(ir::Value* value, DType type);
  /// floor(a / 2^b) by operations of Ethos-U55 and U65, whose shifts always round.
  Result<ir::Value*> shiftedDown(ir::Value* a, ir::Value* b, DType type);

  // Index and resize (index.cpp, resize.cpp)
  // ------------------------------------------------------------------------------------
  /// indices [N, W] as truth values [N, W, rows]: 1 where the index equals the row.
  Result<ir::Value*> oneHot(ir::Value* indices, int64_t rows);
  Status gatherRows(ir::Node* node);
  Status scatterRows(ir::Node* node);
  /// Bytes [N, K, width] with one row of each matrix replaced by `row` [N, 1, width]: where `hits` [N, K, 1]
  /// are 1, and `none`, their complement, 0.
  Result<ir::Value*> replacedRow(ir::Value* rows, ir::Value* row, ir::Value* hits, ir::Value* none);
  /// The product of one-hot rows [N, R, D] and bytes [N, D, width]: for each of them, the row of bytes where
  /// it is 1. Ethos-U55 and U65.
  Result<ir::Value*> chosenRows(ir::Value* which, ir::Value* rows);
  Status resizeNearest(const tosa::Resize& node);
  Status resizeBilinear(const tosa::Resize& node);
  /// Lowers the RESCALE after the 48-bit result of a RESIZE, whose sums fit 32 bits.
  Status rescaleSums(const ir::Value* output, ir::Value* sums);

  // Matrix products (matmul.cpp)
  // ------------------------------------------------------------------------------------
  /// The product of [1, rows, depth] and [1, columns, depth] with axes of any size, by operations of
  /// Ethos-U85.
  Result<ir::Value*> productInParts(const Operand& x, const Operand& y, DType type);
  /// result[n][a][b] = sum over d of x[n][a][d] * y[n][b][d], minus their zero points, by operations of
  /// Ethos-U55 and U65. `type`: of the products and the sums.
  Result<ir::Value*> rowProducts(const Operand& x, const Operand& y, DType type);
  /// The right matrix of a product, int8, as it is in memory: element (k, n) is element
  /// offset + k * depthStride + n * columnStride of `value`; one of the strides is 1.
  struct RightMatrix {
    ir::Value* value = nullptr;
    int64_t offset = 0, depthStride = 1, columnStride = 1, zeroPoint = 0;
  };
  /// Whether products of [rows, depth] and [depth, columns] take fewer cycles as convolutions with computed
  /// weight streams than row by row (coded_product.cpp).
  bool prefersCodes(int64_t batch, int64_t rows, int64_t depth, int64_t columns) const;
  /// A MATMUL of 8-bit matrices by such convolutions.
  Status codedProducts(ir::Node* node);
  /// The product of [1, rows, depth] and [depth, columns] as [1, rows, columns], by convolutions whose weight
  /// streams are written by operations of Ethos-U55 and U65. `operations` receives those that compute the
  /// result.
  Result<ir::Value*> codedProduct(const Operand& x, const RightMatrix& y, int64_t columns, DType type,
                                  std::vector<ir::Node*>& operations);
  /// The weight streams of `count` columns from `first` on.
  Result<ir::Value*> codedColumns(const RightMatrix& y, int64_t depth, int64_t first, int64_t count,
                                  const npu_ir::CodedOrder& order);
  /// Weights and bias of a convolution over `taps` positions that gives each of `channels` channels,
  /// `streams` apart, the elements of a group. Made once for all products.
  struct Selector {
    ir::Value *weight = nullptr, *bias = nullptr;
  };
  const Selector& selectorOf(int64_t unit, int64_t channels, int64_t taps, int64_t streams);
  /// The groups of one stream, 8 bytes each, in stream order: weights before the zero point is subtracted.
  ir::Value* groupedWeights(const RightMatrix& y, int64_t depth, int64_t columns, int64_t stream,
                            const npu_ir::CodedOrder& order);
  /// A stream from its groups.
  ir::Value* codedStream(ir::Value* groups, int64_t zeroPoint, int64_t bytes);
  /// The product of x [N, rows, depth], 16 bits, and y [N, columns, depth], bytes of 16-bit values, over
  /// `count` elements of the depth, as int32: by weight streams if y is int8, else row by row.
  Result<ir::Value*> productOfBytes(ir::Value* x, const Operand& y, int64_t start, int64_t count);
  /// The product of 16-bit matrices a [N, rows, depth] and b [N, columns, depth] and the RESCALE that
  /// consumes it, by operations of Ethos-U55 and U65.
  Status wideProducts(ir::Node* node, ir::Value* a, ir::Value* b);
  /// The product of 16-bit matrices a and 256 * high + low, of bytes if they are coded, that is multiplied,
  /// shifted right and rounded to `type`.
  struct WideProduct {
    ir::Value *a = nullptr, *high = nullptr;
    Operand low;
    int64_t multiplier = 1, shift = 0;
    npu_ir::OutputStage stage;  // of the last operation, except for its shift
    DType type = DType::Int16;
  };
  /// If it is only shifted, by more than 8 bits, and its depth is at most 256.
  Result<ir::Value*> shiftedProduct(WideProduct product, std::vector<ir::Node*>& operations);
  /// Exact for any multiplier of 15 bits: in digits.
  Result<ir::Value*> scaledProduct(WideProduct product, std::vector<ir::Node*>& operations);
  /// value >> from, rounded down.
  Result<ir::Value*> upperBits(ir::Value* value, int64_t from, DType type);

  // Reductions (reduce.cpp): along the width of [H,W,C] maps, as [H,1,C]
  // ------------------------------------------------------------------------------------
  /// The maximum or minimum of 8 or 16-bit values; axes up to 65536.
  ir::Value* extremum(ir::Value* map, bool maximum);
  /// The maximum or minimum of values of any type, axes of any size.
  Result<ir::Value*> columnExtremes(ir::Value* map, bool maximum);
  /// Sums, of a type narrower than int32 only for a depth of 1; axes up to 65536. `operations` receives those
  /// that compute the result.
  Result<ir::Value*> columnSums(const Operand& operand, DType type, std::vector<ir::Node*>& operations);
  /// Position of the first maximum, as int32; axes up to 65536, width up to 32768.
  Result<ir::Value*> columnPositions(ir::Value* map);

  // Fusing (rescale.cpp)
  // ----------------------------------------------------------------------------------
  /// The parameters for the channels that an operation computes.
  RescaleNumbers channelNumbers(const ir::Node* operation, const RescaleNumbers& numbers) const;
  /// Whether the operations that compute the value can look up its int8 codes as they write them. wide: to 32
  /// bits.
  bool canFuseTable(const ir::Value* input, bool wide) const;
  /// Whether codes are converted by the operation that computes them rather than in a pass of their own.
  bool canFuseCodeConversion(const tosa::Rescale& node, const RescaleNumbers& numbers) const;
  /// Whether the RESCALE only saturates an already shifted product to 8 or 16 bits.
  static bool narrowsProduct(const ir::Node* operation, const RescaleNumbers& numbers);
  /// The output stage that rescales the sums of a RESIZE operation, which can shift but not multiply them.
  /// Nothing if the RESCALE is more than a shift.
  static std::optional<npu_ir::OutputStage> shiftOf(const npu_ir::Resize& operation,
                                                    const RescaleNumbers& numbers);
  /// Whether the RESCALE only turns the operation's int8 codes into the corresponding uint8 codes.
  static bool makesUnsigned(const ir::Node* operation, const RescaleNumbers& numbers);
  /// Whether a RESCALE only turns uint8 codes into the corresponding int8 codes.
  static bool makesSigned(const tosa::Rescale& node);
  /// The uint8 bytes whose codes, or some of them in another shape, a RESCALE only makes signed; else null.
  Result<ir::Value*> unsignedCodes(const ir::Value* value);
  /// The codes of a convolution's input with zero point `zero`: the uint8 bytes, with their zero point, if a
  /// RESCALE only makes them signed.
  Result<ir::Value*> codesOf(const ir::Value* input, int64_t& zero);
  bool canFuse(const ir::Node* operation, const RescaleNumbers& numbers) const;
  void fuse(ir::Node* operation, const RescaleNumbers& numbers);

  // Moves (move.cpp)
  // --------------------------------------------------------------------------------------
  /// A value of `shape` composed of strided copies of `value`.
  ir::Value* rearranged(ir::Value* value, const Shape& shape, const Shape& box, int64_t sourceOffset,
                        const ir::Ints& sourceStrides, int64_t targetOffset, const ir::Ints& targetStrides);
  ir::Value* transposed(ir::Value* value, const std::vector<int64_t>& permutation);
  /// An int8 value of [planes, n] as [n, planes]; n a multiple of 8.
  ir::Value* interleaved(ir::Value* value, int64_t planes);
  /// An int8 value of [n, planes] as [planes, n]; n a multiple of 8.
  ir::Value* deinterleaved(ir::Value* value, int64_t planes);
  /// [before, after] per dimension, outermost first.
  Result<ir::Value*> padded(ir::Value* value, const ir::Ints& padding, int64_t constantValue);
  /// A box filled with one value. `near`: a map of the same type at hand, parts of which may be read
  /// instead of constants.
  ir::Value* filled(DType type, const Shape& shape, int64_t value, ir::Value* near = nullptr);
  /// The value repeated `times` times along an axis.
  ir::Value* repeated(ir::Value* value, size_t axis, int64_t times);
  /// The value reversed along an axis.
  ir::Value* reversed(ir::Value* value, size_t axis);
  /// The value repeated along dimensions of size 1.
  Result<ir::Value*> broadcastTo(ir::Value* value, const Shape& shape);

  const ir::Graph& tosa_;
  const npu::Target& target_;
  ir::Graph result_;
  ir::Builder builder_;
  const ByteFunctions bytes_;
  const WideFunctions functions_;
  const WideTables tables_;
  std::unordered_set<const ir::Value*> readByParts_;  // besides the uses that are computed
  std::unordered_map<const ir::Value*, ir::Value*> values_;
  std::unordered_map<const ir::Value*, std::vector<ir::Node*>> operations_;
  std::map<std::array<int64_t, 4>, Selector> selectors_;
  std::unordered_map<uint64_t, const ir::Node*> concats_;  // by a hash of axis and operands
  std::unordered_map<const ir::Node*, int64_t>
      preShift_;  // results of an operation are its TOSA values / 2^n
  std::unordered_map<const ir::Node*, int64_t>
      firstChannel_;  // of the TOSA value that an operation computes some channels of
};

}  // namespace carina::compiler
