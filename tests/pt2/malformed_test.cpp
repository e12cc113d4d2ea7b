// SPDX-License-Identifier: Apache-2.0
// Damaged, hostile and unusual archives: each is refused with its specific reason, and none does harm.
#include <gtest/gtest.h>

#include "pt2/edited_archive.hpp"
#include "support/require.hpp"

namespace carina::pt2 {
namespace {

using test::EditedArchive;

#define EXPECT_REFUSED(archive, reason)                            \
  do {                                                             \
    const std::string refusal = (archive).error();                 \
    EXPECT_NE(refusal.find(reason), std::string::npos) << refusal; \
  } while (false)

std::string archiveError(const std::string& bytes) {
  return errorOf(readExportedProgram(asBytes(bytes), nullptr));
}

TEST(Malformed, TheUnmodifiedSamplesAreRead) {
  for (const char* sample : {"modes.pt2", "state.pt2", "state_flat.pt2", "state_pickled.pt2"}) {
    EXPECT_EQ(EditedArchive(sample).error(), "") << sample;
  }
}

TEST(Malformed, OtherFiles) {
  EXPECT_NE(archiveError("").find("not a zip archive"), std::string::npos);
  EXPECT_NE(archiveError("hello, this is no model").find("not a zip archive"), std::string::npos);
  EXPECT_NE(archiveError(writeZip({})).find("empty archive"), std::string::npos);
  const std::pair<std::string, std::string> text{"readme.txt", "hello"};
  EXPECT_NE(archiveError(writeZip(std::span(&text, 1))).find("holds no exported program"), std::string::npos);
  const std::pair<std::string, std::string> weights{"net/data.pkl", "\x80\x02}."};
  EXPECT_NE(archiveError(writeZip(std::span(&weights, 1))).find("torch.save() or torch.jit.save()"),
            std::string::npos);
  const std::pair<std::string, std::string> library{"net/archive_format", "pt2"};
  EXPECT_NE(archiveError(writeZip(std::span(&library, 1))).find("without a graph"), std::string::npos);
}

TEST(Malformed, MissingFilesNameThePath) {
  EXPECT_NE(errorOf(readExportedProgram("no/such/file.pt2")).find("no/such/file.pt2: cannot open"),
            std::string::npos);
}

TEST(Malformed, TruncatedAnywhere) {
  const std::string bytes = EditedArchive("modes.pt2").bytes();
  for (size_t n = 0; n < bytes.size(); n += 41) EXPECT_NE(archiveError(bytes.substr(0, n)), "") << n;
}

TEST(Malformed, AnyFlippedByteIsReadOrRefused) {
  const std::string bytes = EditedArchive("modes.pt2").bytes();
  for (size_t at = 0; at < bytes.size(); at += 29) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    static_cast<void>(archiveError(damaged));
  }
}

TEST(Malformed, ContainerRecords) {
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace("archive_version", "0", "1"), "archive's version is '1'");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace("byteorder", "little", "big"), "byte order is 'big'");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace("archive_format", "pt2", "pt3"), "format is 'pt3'");
  EXPECT_REFUSED(EditedArchive("modes.pt2").add("elsewhere/x", "1"), "outside the archive's folder");
  EXPECT_REFUSED(EditedArchive("modes.pt2").add("modes/byteorder", "little"),
                 "two members named 'modes/byteorder'");
  EXPECT_REFUSED(EditedArchive("modes.pt2")
                     .add("modes/models/decode.json", "{}")
                     .remove("models/model.json")
                     .add("modes/models/encode.json", "{}"),
                 "holds 2 programs: 'decode', 'encode'");
}

TEST(Malformed, SchemaVersions) {
  for (const char* major : {"7", "9", "-1"}) {
    EXPECT_REFUSED(
        EditedArchive("modes.pt2").replace("model.json", "\"major\": 8", std::string("\"major\": ") + major),
        "schema version");
  }
  EditedArchive newer("modes.pt2");
  const auto program = require(newer.replace("model.json", "\"minor\": 20", "\"minor\": 99").read());
  EXPECT_EQ(program.warnings.size(), 1u);
}

TEST(Malformed, Json) {
  EditedArchive nested("modes.pt2");
  nested.member("models/model.json") = std::string(5000, '[') + std::string(5000, ']');
  EXPECT_REFUSED(nested, "nested more than");
  EditedArchive cut("modes.pt2");
  cut.member("models/model.json").resize(500);
  EXPECT_REFUSED(cut, "JSON text is malformed");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace("model.json", "\"as_int\": 2}", "\"as_integer\": 2}"),
                 "unknown tag 'as_integer'");
  EXPECT_REFUSED(EditedArchive("modes.pt2")
                     .replace("model.json", "{\"as_int\": 2}", "{\"as_int\": 2, \"as_float\": 2.0}"),
                 "exactly one key");
  EXPECT_REFUSED(EditedArchive("modes.pt2")
                     .replace("model.json", "{\"as_int\": 2}", "{\"as_int\": 99999999999999999999}"),
                 "JSON");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace("model.json", "\"graph_module\"", "\"graph_nodule\""),
                 "has no 'graph_module'");
}

TEST(Malformed, Graphs) {
  const std::string self = "\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}";
  const std::string itself = "\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"mul\"}}";
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace("model.json", self, itself), "used before it is defined");
  EXPECT_REFUSED(EditedArchive("numbers.pt2")
                     .replace("model.json", "\"outputs\": [{\"as_tensor\": {\"name\": \"add\"}}]",
                              "\"outputs\": [{\"as_tensor\": {\"name\": \"x\"}}]"),
                 "defined twice");
  EXPECT_REFUSED(EditedArchive("modes.pt2")
                     .replace("model.json", "torch.ops.aten.mul.Tensor", "torch.ops.aten.mool.Tensor"),
                 "the operator aten.mool.Tensor is unknown");
  EXPECT_REFUSED(EditedArchive("modes.pt2")
                     .replace("model.json", "torch.ops.aten.mul.Tensor", "torch.ops.aten.fft_rfft.default"),
                 "aten.fft_rfft.default has no argument 'other'");
  EXPECT_REFUSED(
      EditedArchive("complex_transforms.pt2")
          .replace("model.json", "torch.ops.aten.fft_ifftshift.default", "torch.ops.aten.tanh.default"),
      "tanh of complex numbers is not supported");
  EXPECT_REFUSED(EditedArchive("complex_transforms.pt2")
                     .replace("model.json", "{\"as_ints\": [4, 12]}", "{\"as_ints\": [4, 9000000]}"),
                 "a Fourier transform of 9000000 elements would be a product with a matrix of 9000000 x 8, "
                 "which takes too much memory");
  EXPECT_REFUSED(EditedArchive("modes.pt2")
                     .replace("model.json", "torch.ops.aten.mul.Tensor", "torch.ops.mine.mul.default"),
                 "mine.mul.default is a custom operator");
  EXPECT_REFUSED(EditedArchive("modes.pt2")
                     .replace("model.json", "\"name\": \"other\", \"arg\"", "\"name\": \"another\", \"arg\""),
                 "has no argument 'another'");
  EXPECT_REFUSED(
      EditedArchive("modes.pt2").replace("model.json", "{\"as_int\": 2}", "{\"as_string\": \"two\"}"),
      "cannot be as_string");
}

TEST(Malformed, WritesToPairsOfRealNumbers) {
  const std::string next = "{\"target\": \"torch.ops.aten.exp.default\"";
  const std::string write =
      "{\"target\": \"torch.ops.aten.neg_.default\", \"inputs\": [{\"name\": \"self\", \"arg\": "
      "{\"as_tensor\": {\"name\": \"view_as_real\"}}, \"kind\": 1}], \"outputs\": [{\"as_tensor\": "
      "{\"name\": "
      "\"view_as_real\"}}], \"metadata\": {}, \"name\": \"neg_\"}, ";
  EXPECT_REFUSED(EditedArchive("complex_arithmetic.pt2").replace("model.json", next, write + next),
                 "writes to complex numbers as pairs of real numbers (torch.view_as_real)");
}

TEST(Malformed, LongNames) {
  EXPECT_REFUSED(
      EditedArchive("modes.pt2").replace("model.json", "torch.ops.aten.mul.Tensor", std::string(5000, 'm')),
      "longer than 4096 bytes");
}

TEST(Malformed, Shapes) {
  const std::string two = "\"sizes\": [{\"as_int\": 2}, {\"as_int\": 4}]";
  EXPECT_REFUSED(
      EditedArchive("modes.pt2").replace("model.json", two, "\"sizes\": [{\"as_int\": 2}, {\"as_int\": 5}]"),
      "a subgraph takes f32[2,5] but gets f32[2,4]");
  EXPECT_REFUSED(EditedArchive("numbers.pt2")
                     .replace("model.json", "\"sizes\": [{\"as_int\": 3}]", "\"sizes\": [{\"as_int\": 5}]"),
                 "operands imply");
  EXPECT_REFUSED(
      EditedArchive("modes.pt2").replace("model.json", two, "\"sizes\": [{\"as_int\": -2}, {\"as_int\": 4}]"),
      "sizes cannot be negative");
  EXPECT_REFUSED(
      EditedArchive("modes.pt2")
          .replace("model.json", two, "\"sizes\": [{\"as_int\": 4611686018427387904}, {\"as_int\": 4}]"),
      "more than 2^31-1 elements");
  std::string many = "\"sizes\": [{\"as_int\": 1}";
  for (int i = 0; i < 100; ++i) many += ", {\"as_int\": 1}";
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace("model.json", two, many + "]"),
                 "more than 64 dimensions");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace("model.json", "\"dtype\": 7", "\"dtype\": 10"),
                 "a subgraph takes complex numbers but gets real ones");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace("model.json", "\"dtype\": 7", "\"dtype\": 77"),
                 "unknown element type 77");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace("model.json", "\"layout\": 7", "\"layout\": 2"),
                 "not a dense tensor");
}

TEST(Malformed, Weights) {
  const std::string config = "model_weights_config.json";
  EditedArchive small("modes.pt2");
  small.member("data/weights/weight_0").resize(40);
  EXPECT_REFUSED(small, "'fc.weight': of shape [3,4] at offset 0 reaches outside its storage of 10 elements");
  EditedArchive odd("modes.pt2");
  odd.member("data/weights/weight_0").resize(47);
  EXPECT_REFUSED(odd, "47 bytes is not a multiple");
  EditedArchive empty("modes.pt2");
  empty.member("data/weights/weight_0").clear();
  EXPECT_REFUSED(empty, "fake tensors");
  EXPECT_REFUSED(EditedArchive("modes.pt2").remove("data/weights/weight_0"),
                 "its storage 'weight_0' is missing");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace(config, "weight_0", "../weight_0"), "impossible member");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace(config, "\"fc.weight\"", "\"fc.wait\""),
                 "'fc.weight': is not among the archive's weights");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace(config, "\"use_pickle\": false", "\"use_pickle\": true"),
                 "pickled object");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace(config, "\"dtype\": 7", "\"dtype\": 5"),
                 "outside its storage");
  EXPECT_REFUSED(EditedArchive("modes.pt2").replace(config, "\"dtype\": 7", "\"dtype\": 4"),
                 "is i32[3,4] in the archive, but f32[3,4] in the graph");
  EXPECT_REFUSED(
      EditedArchive("modes.pt2")
          .replace(config, "\"storage_offset\": {\"as_int\": 0}", "\"storage_offset\": {\"as_int\": -1}"),
      "negative offset");
  EXPECT_REFUSED(EditedArchive("state_flat.pt2").remove("serialized_state_dict.pt"),
                 "is not among the archive's weights");
  EditedArchive broken("state_pickled.pt2");
  broken.member("data/weights/model.pt").resize(100);
  EXPECT_REFUSED(broken, "in 'data/weights/model.pt': is not a zip archive");
}

TEST(Malformed, Signatures) {
  EXPECT_REFUSED(
      EditedArchive("modes.pt2")
          .replace("model.json", "\"parameter_name\": \"fc.weight\"", "\"parameter_name\": \"fc.bias\""),
      "in the archive, but");
  EXPECT_REFUSED(
      EditedArchive("modes.pt2").replace("model.json", "{\"user_output\": {", "{\"loss_output\": {"),
      "'name'");
  EXPECT_REFUSED(
      EditedArchive("modes.pt2").replace("model.json", "{\"user_output\": {", "{\"magic_output\": {"),
      "unknown specification 'magic_output'");
}

}  // namespace
}  // namespace carina::pt2
