// SPDX-License-Identifier: Apache-2.0
#include "pipeline/operator_cases.hpp"

#include <cmath>
#include <map>
#include <sstream>

#include "aten/ops.hpp"

namespace carina::pipeline {
namespace {

// OPERATORS ; OPERANDS ; ATTRIBUTES ; NOTE
// Operators that take the same: without "aten.", ".default" added where no overload is named.
// Operands in order: f[...] float, i[...] int32, l[...] int64, b[...] bool input; w[...] float, k[...] int64
// (zeros), m[...] bool constant; - absent; (...) a list.
constexpr const char* kCases = R"(
abs, acos, acosh, asin, asinh, atan, atanh, ceil, cos, cosh, elu, erf, exp, expm1, floor, gelu, hardsigmoid, hardswish, leaky_relu ; f[1,4,6,5]
log, log10, log1p, log2, log_sigmoid, logit, mish, neg, reciprocal, relu, relu6, round, rsqrt, selu, celu, sigmoid, sign, silu ; f[1,4,6,5]
sin, sinh, softplus, sqrt, square, tan, tanh, trunc, hardshrink, softshrink, exp2, erfc, frac ; f[1,4,6,5]
hardtanh ; f[1,4,6,5] ; min_val=-0.5 max_val=0.5
clamp ; f[1,4,6,5] ; min=-0.5 max=0.5
clamp_min ; f[1,4,6,5] ; min=0.25
clamp_max ; f[1,4,6,5] ; max=0.25
threshold ; f[1,4,6,5] ; threshold=0.5 value=0.25
prelu ; f[1,4,6,5] w[4]
pow.Tensor_Scalar ; f[1,4,6,5] ; exponent=3
add.Tensor, sub.Tensor, mul.Tensor, div.Tensor, maximum, minimum, floor_divide, remainder.Tensor, fmod.Tensor, atan2, pow.Tensor_Tensor ; f[1,4,6,5] f[1,4,6,5]
add.Scalar, sub.Scalar, rsub.Scalar, mul.Scalar, div.Scalar, remainder.Scalar ; f[1,4,6,5] ; other=2.5
eq.Tensor, ne.Tensor, lt.Tensor, le.Tensor, gt.Tensor, ge.Tensor ; f[1,4,6,5] f[1,4,6,5]
eq.Scalar, ne.Scalar, lt.Scalar, le.Scalar, gt.Scalar, ge.Scalar ; f[1,4,6,5] ; other=0.5
logical_and, logical_or, logical_xor ; b[1,4,6,5] b[1,4,6,5]
logical_not ; b[1,4,6,5]
bitwise_and.Tensor, bitwise_or.Tensor, bitwise_xor.Tensor ; i[1,4,6,5] i[1,4,6,5]
bitwise_not ; i[1,4,6,5]
__lshift__.Scalar, __rshift__.Scalar ; i[1,4,6,5] ; other=2
where.self ; b[1,4,6,5] f[1,4,6,5] f[1,4,6,5]
masked_fill.Scalar ; f[1,4,6,5] m[1,4,6,5] ; value=0.0
tril, triu ; f[1,6,6]
conv1d ; f[1,8,20] w[16,8,3] w[16]
conv2d ; f[1,8,12,12] w[16,8,3,3] w[16] ; padding=[1,1]
conv2d ; f[1,8,12,12] w[8,1,3,3] w[8] ; padding=[1,1] groups=8 ; depthwise
conv2d ; f[1,8,12,12] w[16,4,3,3] w[16] ; padding=[1,1] groups=2 ; two groups
conv2d ; f[1,8,13,13] w[16,8,3,3] w[16] ; stride=[4,4] ; stride 4
conv2d ; f[1,8,20,20] w[16,8,3,3] w[16] ; dilation=[3,3] ; dilation 3
conv2d ; f[3,8,12,12] w[16,8,3,3] w[16] ; ; batch 3
conv2d ; f[1,4,100,12] w[8,4,80,3] w[8] ; ; kernel 80 rows high
conv3d ; f[1,4,6,6,6] w[8,4,3,3,3] w[8]
conv_transpose1d ; f[1,8,10] w[8,4,3] w[4] ; stride=[2]
conv_transpose2d.input ; f[1,8,6,6] w[8,4,3,3] w[4] ; stride=[2,2] padding=[1,1] output_padding=[1,1]
conv_transpose3d.input ; f[1,4,4,4,4] w[4,4,3,3,3] w[4] ; stride=[2,2,2] padding=[1,1,1]
linear ; f[3,16] w[8,16] w[8]
mm ; f[3,16] w[16,8]
mm ; f[3,16] f[16,8] ; ; both computed
bmm, matmul ; f[2,3,8] f[2,8,4]
addmm ; w[8] f[3,16] w[16,8]
baddbmm ; f[2,3,4] f[2,3,8] f[2,8,4]
scaled_dot_product_attention ; f[1,2,6,8] f[1,2,6,8] f[1,2,6,8]
avg_pool2d ; f[1,8,12,12] ; kernel_size=[3,3] stride=[2,2] padding=[1,1]
avg_pool2d ; f[1,4,40,40] ; kernel_size=[20,20] stride=[20,20] ; kernel 20 x 20
avg_pool1d ; f[1,8,20] ; kernel_size=[3] stride=[2]
max_pool2d ; f[1,8,12,12] ; kernel_size=[3,3] stride=[2,2] padding=[1,1]
max_pool2d ; f[1,8,12,12] ; kernel_size=[3,3] stride=[1,1] dilation=[2,2] ; dilation 2
max_pool1d ; f[1,8,20] ; kernel_size=[3] stride=[2]
avg_pool3d ; f[1,4,6,8,8] ; kernel_size=[2,3,3] stride=[2,2,2] padding=[0,1,1]
max_pool3d, max_pool3d_with_indices ; f[1,4,6,8,8] ; kernel_size=[2,3,3] stride=[2,2,2] padding=[0,1,1]
adaptive_avg_pool2d ; f[1,8,12,12] ; output_size=[1,1]
adaptive_avg_pool2d ; f[1,8,12,12] ; output_size=[5,7] ; windows of different sizes
adaptive_avg_pool1d, adaptive_max_pool1d ; f[1,8,20] ; output_size=[6]
adaptive_max_pool2d ; f[1,8,12,12] ; output_size=[5,7]
adaptive_avg_pool3d, adaptive_max_pool3d ; f[1,4,6,8,8] ; output_size=[4,3,2]
upsample_nearest1d.vec, _upsample_nearest_exact1d.vec ; f[1,4,6] ; scale_factors=None output_size=[9]
upsample_linear1d.vec ; f[1,4,6] ; scale_factors=None align_corners=False output_size=[9]
upsample_nearest2d.vec ; f[1,4,6,6] ; scale_factors=[2.0,2.0] output_size=None
upsample_nearest2d.vec ; f[1,4,6,6] ; scale_factors=None output_size=[9,11] ; ratio 1.5
upsample_bilinear2d.vec ; f[1,4,6,6] ; scale_factors=[2.0,2.0] align_corners=False output_size=None
_upsample_nearest_exact2d.vec ; f[1,4,6,6] ; scale_factors=None output_size=[9,11]
upsample_bicubic2d.vec, _upsample_bilinear2d_aa.vec, _upsample_bicubic2d_aa.vec ; f[1,4,6,6] ; scale_factors=None align_corners=False output_size=[9,4]
upsample_nearest3d.vec, _upsample_nearest_exact3d.vec ; f[1,4,3,4,5] ; scale_factors=None output_size=[5,8,5]
upsample_trilinear3d.vec ; f[1,4,3,4,5] ; scale_factors=None align_corners=False output_size=[5,8,5]
grid_sampler ; f[1,4,4,5,6] f[1,3,3,3,3] ; interpolation_mode=0 padding_mode=0 align_corners=False ; volumes
grid_sampler_2d ; f[1,4,6,6] w[1,5,5,2] ; interpolation_mode=0 padding_mode=0 align_corners=False ; known positions
grid_sampler_2d ; f[1,4,6,6] f[1,5,5,2] ; interpolation_mode=0 padding_mode=0 align_corners=False
softmax.int, log_softmax.int ; f[1,6,20] ; dim=-1
layer_norm ; f[1,6,20] w[20] w[20] ; normalized_shape=[20]
rms_norm ; f[1,6,20] w[20] ; normalized_shape=[20]
group_norm ; f[1,8,6,5] w[8] w[8] ; num_groups=2
instance_norm ; f[1,8,6,5] w[8] w[8] - - ; use_input_stats=True momentum=0.1 eps=1e-05 cudnn_enabled=False
batch_norm ; f[1,8,6,5] w[8] w[8] w[8] p[8] ; training=False momentum=0.1 eps=1e-05 cudnn_enabled=False
linalg_vector_norm ; f[1,6,20] ; dim=[-1]
sum.dim_IntList, mean.dim ; f[1,8,6,5] ; dim=[2,3]
amax, amin ; f[1,8,6,5] ; dim=[1]
max.dim, min.dim ; f[1,8,6,5] ; dim=1
argmax, argmin ; f[1,8,6,5] ; dim=1
var.correction, std.correction ; f[1,6,20] ; dim=[-1]
prod.dim_int ; f[1,8,6,5] ; dim=1
any.dim, all.dim ; b[1,8,6,5] ; dim=1
cumsum ; f[1,8,6,5] ; dim=1
topk ; f[1,20] ; k=3
sort ; f[1,20]
view ; f[1,8,6,5] ; size=[1,48,5]
reshape ; f[1,8,6,5] ; shape=[8,30]
flatten.using_ints ; f[1,8,6,5]
permute ; f[1,8,6,5] ; dims=[0,2,3,1]
transpose.int ; f[1,8,6,5] ; dim0=1 dim1=3
squeeze.dim ; f[1,8,1,5] ; dim=2
unsqueeze ; f[1,8,5] ; dim=2
expand ; f[1,8,1,5] ; size=[1,8,6,5]
repeat ; f[1,8,6,5] ; repeats=[1,2,1,3]
slice.Tensor ; f[1,8,6,5] ; dim=1 start=1 end=7
slice.Tensor ; f[1,8,6,5] ; dim=1 start=1 end=8 step=3 ; step 3
select.int ; f[1,8,6,5] ; dim=1 index=2
narrow ; f[1,8,6,5] ; dim=1 start=1 length=3
split.Tensor ; f[1,8,6,5] ; split_size=4 dim=1
chunk ; f[1,8,6,5] ; chunks=2 dim=1
unbind.int ; f[1,8,6,5] ; dim=1
cat, stack ; (f[1,8,6,5] f[1,8,6,5]) ; dim=1
constant_pad_nd ; f[1,8,6,5] ; pad=[1,2,0,1]
pad ; f[1,8,6,5] ; pad=[1,2,1,1] mode=reflect ; reflect
pad ; f[1,8,6,5] ; pad=[1,2,1,1] mode=replicate ; replicate
reflection_pad3d, replication_pad3d ; f[1,2,4,6,5] ; padding=[1,2,1,1,2,0]
flip ; f[1,8,6,5] ; dims=[2]
roll ; f[1,8,6,5] ; shifts=[2] dims=[3]
pixel_shuffle ; f[1,8,6,5] ; upscale_factor=2
pixel_unshuffle ; f[1,8,6,4] ; downscale_factor=2
unfold ; f[1,8,12] ; dimension=2 size=4 step=2
gather ; f[1,8,6] l[1,8,3] ; dim=2
index_select ; f[1,8,6] k[3] ; dim=1
index.Tensor ; f[8,6] (k[3])
index_put ; f[8,6] (k[1]) f[1,6]
embedding ; w[20,16] l[1,9]
select_scatter ; f[1,8,6] f[1,6] ; dim=1 index=2
slice_scatter ; f[1,8,6] f[1,3,6] ; dim=1 start=1 end=4
scatter.src ; f[8,6] k[2,6] f[2,6] ; dim=0
glu ; f[1,8,6,5] ; dim=1
lstm_cell ; f[1,10] (f[1,12] f[1,12]) w[48,10] w[48,12] w[48] w[48]
gru_cell ; f[1,10] f[1,12] w[36,10] w[36,12] w[36] w[36]
to.dtype ; b[1,4,6,5] ; dtype=f32 ; from bool
)";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (char c : text) {
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == separator && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  parts.push_back(part);
  for (std::string& item : parts) {
    const size_t first = item.find_first_not_of(' ');
    item = first == std::string::npos ? "" : item.substr(first, item.find_last_not_of(' ') - first + 1);
  }
  return parts;
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> list = split(text, ' ');
  std::erase(list, "");
  return list;
}

/// A constant of the letter's kind: weights follow a sine, "p" is positive.
Tensor constantOf(char kind, const Shape& shape) {
  if (kind == 'k') return Tensor::zeros(DType::Int64, shape);
  if (kind == 'm') return Tensor::zeros(DType::Bool, shape);
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  const auto values = tensor.mutableAs<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = std::sin(static_cast<float>(i) * 0.7f) * 0.4f;
    values[i] = kind == 'p' ? std::abs(value) + 0.5f : value;
  }
  return tensor;
}

class CaseReader {
 public:
  explicit CaseReader(std::string op) : name_(op) {
    if (name_.find('.') == std::string::npos) name_ += ".default";
    name_ = "aten." + name_;
  }

  Result<OperatorCase> read(const std::string& operands, const std::string& attributes,
                            const std::string& note) {
    const ir::OpDef* def = aten::findOperator(name_);
    if (def == nullptr) return fail("there is no operator {}", name_);
    ir::NodeSpec spec;
    spec.def = def;
    const std::string node = name_.substr(5, name_.find('.', 5) - 5);
    spec.location = std::make_shared<const ir::Location>(ir::Location{node, "", ""});
    const std::vector<std::string> given = words(operands);
    for (size_t i = 0; i < def->operands.size(); ++i) {
      CARINA_TRY(auto group, operandGroup(i < given.size() ? given[i] : "-"));
      spec.operands.push_back(std::move(group));
    }
    CARINA_TRY(spec.attributes, readAttributes(*def, attributes));
    CARINA_TRY(ir::Node* const made, graph_.create(std::move(spec)));
    std::vector<ir::Value*> outputs(made->results().begin(), made->results().end());
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i]->name = fmt::format("y{}", i);
    // Of several results the first is what networks use; lists are used whole.
    if (def->results.front().arity == ir::Arity::One) outputs.resize(1);
    graph_.setOutputs(std::move(outputs));
    return OperatorCase{name_, note, std::move(graph_)};
  }

 private:
  Result<std::vector<ir::Value*>> operandGroup(const std::string& text) {
    std::vector<ir::Value*> group;
    if (text == "-") return group;
    if (text.front() == '(') {
      for (const std::string& item : words(text.substr(1, text.size() - 2))) {
        CARINA_TRY(ir::Value* const value, operand(item));
        group.push_back(value);
      }
      return group;
    }
    CARINA_TRY(ir::Value* const value, operand(text));
    group.push_back(value);
    return group;
  }

  Result<ir::Value*> operand(const std::string& text) {
    static const std::map<char, DType> kInputs{
        {'f', DType::Float32}, {'i', DType::Int32}, {'l', DType::Int64}, {'b', DType::Bool}};
    Shape shape;
    std::istringstream sizes(text.substr(2, text.size() - 3));
    for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
    const char kind = text.front();
    if (const auto input = kInputs.find(kind); input != kInputs.end())
      return graph_.addInput({input->second, shape}, fmt::format("x{}", graph_.inputs().size()));
    return graph_.addConstant(constantOf(kind, shape));
  }

  Result<std::vector<ir::Attribute>> readAttributes(const ir::OpDef& def, const std::string& text) const {
    std::map<std::string, std::string, std::less<>> given;
    for (const std::string& item : words(text)) {
      const size_t equals = item.find('=');
      given[item.substr(0, equals)] = item.substr(equals + 1);
    }
    std::vector<ir::Attribute> attributes;
    for (const ir::AttributeDef& attribute : def.attributes) {
      const auto at = given.find(attribute.name);
      const std::string value = at == given.end() ? std::string(attribute.defaultText) : at->second;
      if (at != given.end()) given.erase(at);
      CARINA_TRY(ir::Attribute parsed, ir::parseAttribute(attribute, value));
      attributes.push_back(std::move(parsed));
    }
    if (!given.empty()) return fail("{} has no attribute {}", def.name, given.begin()->first);
    return attributes;
  }

  std::string name_;
  ir::Graph graph_;
};

}  // namespace

Result<std::vector<OperatorCase>> operatorCases() {
  std::vector<OperatorCase> cases;
  std::istringstream lines(kCases);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    std::vector<std::string> fields = split(line, ';');
    fields.resize(4);
    for (const std::string& op : split(fields[0], ',')) {
      auto made = CaseReader(op).read(fields[1], fields[2], fields[3]);
      if (!made) return std::move(made).error().at(line);
      cases.push_back(std::move(*made));
    }
  }
  return cases;
}

}  // namespace carina::pipeline
