// SPDX-License-Identifier: Apache-2.0
#include "tosa/vector_files.hpp"

#include "base/file.hpp"
#include "ir/printer.hpp"
#include "tosa/interpreter.hpp"
#include "tosa_io/tosa_reader.hpp"
#include "tosa_io/tosa_writer.hpp"

namespace carina::test {
namespace {

/// Describes the first difference of two arrays.
std::string difference(const Tensor& got, const Tensor& wanted) {
  if (got.dtype() != wanted.dtype() || got.shape() != wanted.shape()) {
    return fmt::format("type {} instead of {}", ir::typeText({got.dtype(), got.shape()}),
                       ir::typeText({wanted.dtype(), wanted.shape()}));
  }
  int64_t count = 0, first = -1;
  for (int64_t i = 0; i < got.numElements(); ++i) {
    if (got.realAt(i) == wanted.realAt(i)) continue;
    if (first < 0) first = i;
    ++count;
  }
  if (first < 0) return "bits differ although values are equal";
  return fmt::format("{} of {} elements differ, first [{}]: {} instead of {}", count, got.numElements(),
                     first, got.realAt(first), wanted.realAt(first));
}

}  // namespace

Result<Tensor> withType(const Tensor& tensor, const ir::Type& type) {
  if (tensor.shape() != type.shape || dtypeSize(tensor.dtype()) != dtypeSize(type.dtype)) {
    return fail(Code::Damaged, "the array is {}, the graph has {}",
                ir::typeText({tensor.dtype(), tensor.shape()}), ir::typeText(type));
  }
  return tensor.dtype() == type.dtype ? tensor : tensor.bitcast(type.dtype);
}

Result<Vector> readVector(const std::filesystem::path& tosa, const std::filesystem::path& npz) {
  Vector vector;
  CARINA_TRY(vector.graph, tosa_io::readTosa(tosa));
  CARINA_TRY(vector.arrays, readNpz(npz));
  for (size_t i = 0; i < vector.graph.inputs().size(); ++i) {
    const Tensor* array = findTensor(vector.arrays, fmt::format("in{}", i));
    if (!array) return fail(Code::Damaged, "{} lacks in{}", npz.string(), i);
    CARINA_TRY(Tensor input, withType(*array, vector.graph.inputs()[i]->type));
    vector.inputs.push_back(std::move(input));
  }
  return vector;
}

namespace {

::testing::AssertionResult matchesOutputs(const ir::Graph& graph, const Vector& vector) {
  const auto results = tosa::interpret(graph, vector.inputs);
  if (!results.ok()) return ::testing::AssertionFailure() << results.error().str();
  for (size_t i = 0; i < results->size(); ++i) {
    const Tensor* wanted = findTensor(vector.arrays, fmt::format("out{}", i));
    if (!wanted) return ::testing::AssertionFailure() << "the arrays lack out" << i;
    const auto typed = withType(*wanted, graph.outputs()[i]->type);
    if (!typed.ok()) return ::testing::AssertionFailure() << typed.error().str();
    if (!((*results)[i] == *typed))
      return ::testing::AssertionFailure() << "out" << i << ": " << difference((*results)[i], *typed);
  }
  return ::testing::AssertionSuccess();
}

}  // namespace

::testing::AssertionResult reproduces(const std::filesystem::path& tosa, const std::filesystem::path& npz) {
  const auto vector = readVector(tosa, npz);
  if (!vector.ok()) return ::testing::AssertionFailure() << vector.error().str();
  return matchesOutputs(vector->graph, *vector);
}

::testing::AssertionResult survivesRoundTrip(const std::filesystem::path& tosa,
                                             const std::filesystem::path& npz) {
  const auto vector = readVector(tosa, npz);
  if (!vector.ok()) return ::testing::AssertionFailure() << vector.error().str();
  const auto bytes = tosa_io::writeTosa(vector->graph);
  if (!bytes.ok()) return ::testing::AssertionFailure() << bytes.error().str();
  const auto owner = std::make_shared<const std::string>(*bytes);
  const auto again = tosa_io::readTosa(asBytes(*owner), owner);
  if (!again.ok()) return ::testing::AssertionFailure() << again.error().str();
  const std::string before = ir::print(vector->graph), after = ir::print(*again);
  // Names in sub-graphs may have to change, since names are unique in a file.
  if (before.find("graph @", 1) == std::string::npos && before != after) {
    return ::testing::AssertionFailure() << "before:\n" << before << "after:\n" << after;
  }
  return matchesOutputs(*again, *vector);
}

}  // namespace carina::test
