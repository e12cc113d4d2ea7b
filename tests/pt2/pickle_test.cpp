// SPDX-License-Identifier: Apache-2.0
// Pickles written opcode by opcode: what is understood, and that everything else is refused without being
// run.
#include "pt2/pickle.hpp"

#include <gtest/gtest.h>

#include "base/file.hpp"
#include "support/require.hpp"

namespace carina::pt2 {
namespace {

/// Writes pickle opcodes.
class Pickle {
 public:
  Pickle() { text_ += "\x80\x02"; }
  Pickle& raw(const std::string& bytes) {
    text_ += bytes;
    return *this;
  }
  Pickle& string(const std::string& value) {
    text_ += 'X';
    little(value.size(), 4);
    text_ += value;
    return *this;
  }
  Pickle& integer(int64_t value) {
    text_ += 'J';
    little(static_cast<uint64_t>(value), 4);
    return *this;
  }
  Pickle& global(const std::string& module, const std::string& name) {
    return raw("c" + module + "\n" + name + "\n");
  }
  Pickle& storage(const std::string& type, const std::string& key, int64_t elements) {
    raw("(").string("storage").global("torch", type).string(key).string("cpu").integer(elements);
    return raw("tQ");
  }
  /// A contiguous vector of float32.
  Pickle& tensor(const std::string& key, int64_t elements, int64_t storageElements) {
    global("torch._utils", "_rebuild_tensor_v2").raw("(").storage("FloatStorage", key, storageElements);
    integer(0).integer(elements).raw("\x85").integer(1).raw("\x85\x89").global("collections", "OrderedDict");
    return raw(")RtR");
  }
  std::string done() const { return text_ + "."; }

 private:
  void little(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>((value >> (8 * i)) & 0xffu);
  }
  std::string text_;
};

std::shared_ptr<const std::string> archiveOf(const std::string& program) {
  const std::vector<std::pair<std::string, std::string>> members{
      {"archive/data.pkl", program},
      {"archive/byteorder", "little"},
      {"archive/data/0", std::string("\0\0\x80?\0\0\0@", 8)}};
  return std::make_shared<const std::string>(writeZip(members));
}

Result<std::vector<PickledTensor>> read(const std::string& program) {
  const auto text = archiveOf(program);
  return readPickledTensors(asBytes(*text), text);
}

std::string pickleError(const std::string& program) {
  return errorOf(read(program));
}

TEST(Pickle, ADictionaryOfTensors) {
  const auto tensors = require(read(Pickle().raw("}(").string("w").tensor("0", 2, 2).raw("u").done()));
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors[0].name, "w");
  Budget budget(0);
  const auto dense = require(denseTensor(tensors[0].tensor, budget));
  EXPECT_EQ(dense.as<float>()[1], 2.0f);
}

TEST(Pickle, CopiesOfOneListAreBounded) {
  // A list of 1,000 pairs in the memo, and 10,000 dictionaries made of it: ten million entries from 60 KB.
  Pickle pickle;
  pickle.raw("](");
  for (int i = 0; i < 1000; ++i) pickle.raw("NN\x86");
  pickle.raw("eq").raw(std::string(1, '\0')).raw("ccollections\nOrderedDict\nq\x01");
  for (int i = 0; i < 10000; ++i) pickle.raw("h\x01h").raw(std::string(1, '\0')).raw("\x85R");
  EXPECT_NE(pickleError(pickle.done()).find("repeats its own values"), std::string::npos);
}

TEST(Pickle, MemoizedParametersAreShared) {
  const auto tensors = require(read(Pickle()
                                        .raw("}(")
                                        .string("a")
                                        .global("torch._utils", "_rebuild_parameter")
                                        .raw("(")
                                        .tensor("0", 2, 2)
                                        .raw("\x88")
                                        .global("collections", "OrderedDict")
                                        .raw(")RtRq\x05")
                                        .string("b")
                                        .raw("h\x05u")
                                        .done()));
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].tensor.storage.data(), tensors[1].tensor.storage.data());
}

TEST(Pickle, OrderedDictsFromPairsWithState) {
  const auto tensors = require(read(Pickle()
                                        .global("collections", "OrderedDict")
                                        .raw("(](]")
                                        .string("w")
                                        .raw("a")
                                        .tensor("0", 1, 2)
                                        .raw("aetR")
                                        .raw("}")
                                        .string("_metadata")
                                        .raw("}sb")
                                        .done()));
  EXPECT_EQ(tensors[0].name, "w");
}

TEST(Pickle, TypesWithoutStorageClass) {
  const auto tensors = require(read(Pickle()
                                        .raw("}")
                                        .string("u")
                                        .global("torch._utils", "_rebuild_tensor_v3")
                                        .raw("((")
                                        .string("storage")
                                        .global("torch.storage", "UntypedStorage")
                                        .string("0")
                                        .string("cpu")
                                        .integer(8)
                                        .raw("tQ")
                                        .integer(2)
                                        .raw("K\x02\x85K\x01\x85\x89")
                                        .global("collections", "OrderedDict")
                                        .raw(")R")
                                        .global("torch", "uint16")
                                        .raw("tRs")
                                        .done()));
  EXPECT_EQ(tensors[0].tensor.type->name, "uint16");
  EXPECT_EQ(tensors[0].tensor.offset, 2);
}

TEST(Pickle, ForeignFunctionsAreNamedAndRefused) {
  EXPECT_NE(
      pickleError(Pickle().global("os", "system").string("true").raw("\x85R").done()).find("calls os.system"),
      std::string::npos);
  EXPECT_NE(pickleError(Pickle().global("builtins", "eval").done()).find("calls builtins.eval"),
            std::string::npos);
  EXPECT_NE(pickleError(Pickle().global("torch", "load").done()).find("calls torch.load"), std::string::npos);
  EXPECT_NE(pickleError(Pickle().raw("\x93").done()).find("opcode 0x93"), std::string::npos);
  EXPECT_NE(pickleError(Pickle().raw("i").done()).find("opcode 0x69"), std::string::npos);
}

TEST(Pickle, OtherContentsAreRefused) {
  EXPECT_NE(pickleError(Pickle().raw("]").done()).find("not a dictionary"), std::string::npos);
  EXPECT_NE(pickleError(Pickle().raw("}").string("a").integer(3).raw("s").done()).find("not a named tensor"),
            std::string::npos);
  EXPECT_NE(
      pickleError(
          Pickle().raw("}(").string("a").tensor("0", 2, 2).string("a").tensor("0", 2, 2).raw("u").done())
          .find("'a' twice"),
      std::string::npos);
}

TEST(Pickle, StoragesAreChecked) {
  EXPECT_NE(pickleError(Pickle().raw("}").string("a").tensor("7", 2, 2).raw("s").done())
                .find("'archive/data/7' is missing"),
            std::string::npos);
  EXPECT_NE(pickleError(Pickle().raw("}").string("a").tensor("0", 2, 3).raw("s").done())
                .find("has 8 bytes, but 3 elements"),
            std::string::npos);
}

TEST(Pickle, ArgumentsOfAnExportInOrder) {
  // ((a, 7, [b]), {"k": None, "x": a}) and a list that contains itself.
  const auto text = archiveOf(Pickle()
                                  .raw("(")
                                  .tensor("0", 2, 2)
                                  .raw("q\x01")
                                  .integer(7)
                                  .raw("]")
                                  .tensor("0", 1, 2)
                                  .raw("at}")
                                  .string("k")
                                  .raw("Ns")
                                  .string("x")
                                  .raw("h\x01s\x86")
                                  .done());
  const auto tensors = require(readPickledArguments(asBytes(*text), text));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].sizes, (Shape{2}));
  EXPECT_EQ(tensors[1].sizes, (Shape{1}));
  EXPECT_EQ(tensors[2].sizes, (Shape{2}));
  const auto cycle = archiveOf(Pickle()
                                   .raw("]q\x01h\x01"
                                        "a")
                                   .done());
  EXPECT_NE(errorOf(readPickledArguments(asBytes(*cycle), cycle)).find("more than 32 deep"),
            std::string::npos);
}

TEST(Pickle, CyclesDoNoHarm) {
  // A list that contains itself, and a dictionary that is its own value.
  EXPECT_NE(pickleError(Pickle()
                            .raw("]q\x01h\x01"
                                 "a")
                            .done()),
            "");
  EXPECT_NE(pickleError(Pickle().raw("}q\x01").string("a").raw("h\x01s").done()).find("not a named tensor"),
            std::string::npos);
}

TEST(Pickle, EveryTruncationIsRefused) {
  const std::string program = Pickle().raw("}(").string("w").tensor("0", 2, 2).raw("u").done();
  for (size_t n = 0; n < program.size(); ++n) EXPECT_NE(pickleError(program.substr(0, n)), "") << n;
}

TEST(Pickle, EveryChangedByteIsReadOrRefused) {
  const std::string program = Pickle().raw("}(").string("w").tensor("0", 2, 2).raw("u").done();
  int refused = 0;
  for (size_t at = 0; at < program.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = program;
      changed[at] = static_cast<char>(value);
      refused += !read(changed).ok();
    }
  }
  EXPECT_GT(refused, static_cast<int>(program.size()) * 128);
}

TEST(Pickle, AnEmptyFileIsAnEmptyDictionary) {
  const auto tensors = require(readPickledTensors({}, nullptr));
  EXPECT_TRUE(tensors.empty());
}

}  // namespace
}  // namespace carina::pt2
