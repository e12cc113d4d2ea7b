// SPDX-License-Identifier: Apache-2.0
// Building images: sizes within the promised limits, nothing linked that must not be, errors that say what to
// do.
#include "firmware/image.hpp"

#include <gmock/gmock.h>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "images.hpp"
#include "platform/image_note.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::firmware {
namespace {

using testing::HasSubstr;
using testing::Not;

class Images : public testing::Test {
 protected:
  /// The image of a shipped network, built with its sources kept in folder_/keep.
  Result<Image> build(const std::string& network, const std::string& target, const std::string& mode,
                      const std::string& platform, const std::string& core = "cortex-m33") {
    CARINA_RETURN_IF_ERROR(compileNetwork(network, target, mode, folder_ / "x.pte"));
    ImageOptions options = imageOptions(folder_ / "x.pte", platform);
    options.source.core = core;
    options.keep = folder_ / "keep";
    return buildImage(options);
  }
  std::string kept(const std::string& name) const {
    auto file = MappedFile::open(folder_ / "keep" / name);
    return file ? std::string(asText((*file)->bytes())) : "";
  }

  test::TempDir folder_;
};

constexpr int64_t kTextLimit = 40 * 1024, kRamLimit = 8 * 1024;

void expectSmall(const Image& image) {
  EXPECT_LT(image.sizes.total.text, kTextLimit);
  EXPECT_GT(image.sizes.total.text, kTextLimit / 4) << "the linker dropped the runtime";
  EXPECT_LT(image.sizes.ramBytes(), kRamLimit);
  EXPECT_GE(image.sizes.stackBytes, 4096);
  int64_t text = 0;
  for (const ComponentSize& size : image.sizes.components) text += size.text;
  EXPECT_EQ(text, image.sizes.total.text);
}

TEST_F(Images, DelegatedNetworksAreSmall) {
  CARINA_NEED_CROSS_COMPILER();
  struct Case {
    const char *target, *mode, *platform, *core;
  };
  for (const Case& c : {Case{"ethos-u55-128", "Shared_Sram", "corstone-300", "cortex-m33"},
                        Case{"ethos-u65-256", "Dedicated_Sram_384KB", "corstone-300", "cortex-m33"},
                        Case{"ethos-u85-256", "Sram_Only", "corstone-320", "cortex-m33"},
                        Case{"ethos-u55-128", "Shared_Sram", "corstone-300", "cortex-m55"}}) {
    SCOPED_TRACE(std::string(c.target) + " " + c.core);
    const auto image = require(build("digits8", c.target, c.mode, c.platform, c.core));
    expectSmall(image);
  }
}

TEST_F(Images, LinkNeitherHeapNorStdio) {
  CARINA_NEED_CROSS_COMPILER();
  const auto image = require(build("mobile", "ethos-u55-256", "Shared_Sram", "corstone-300"));
  ASSERT_TRUE(writeFile(folder_ / "x.elf", image.elf).ok());
  const auto symbols = require(runCommand({"arm-none-eabi-nm", "x.elf"}, folder_.path()));
  ASSERT_EQ(symbols.status, 0) << symbols.output;
  EXPECT_THAT(symbols.output, HasSubstr(" T resetHandler\n"));
  for (const char* name :
       {"malloc", "_malloc_r", "free", "printf", "_printf_r", "_sbrk", "__cxa_throw", "_Znwj", "_Znaj"}) {
    EXPECT_THAT(symbols.output, Not(HasSubstr(std::string(" ") + name + "\n"))) << name;
  }
}

TEST_F(Images, TakeSizesKernelsAndPlacementFromTheProgram) {
  CARINA_NEED_CROSS_COMPILER();
  const auto image = require(build("digits8", "ethos-u65-256", "Dedicated_Sram_384KB", "corstone-300"));
  const Plan& plan = image.plan;
  EXPECT_EQ(plan.fastScratchBytes, 384 * 1024);
  EXPECT_EQ(plan.regionOf("fast scratch"), "SRAM");
  EXPECT_EQ(plan.regionOf("arena"), "DDR");
  EXPECT_EQ(plan.regionOf("program"), "DDR");
  EXPECT_EQ(plan.kernels, (std::vector<std::string>{"quantized_decomposed::quantize_per_tensor.out",
                                                    "quantized_decomposed::dequantize_per_tensor.out"}));
  EXPECT_THAT(kept("app.ld"), HasSubstr("REGION_ALIAS(\"ARENA\", DDR)"));
  EXPECT_THAT(kept("app.cpp"), HasSubstr(fmt::format("temporaryMemory[{}]", plan.temporaryBytes)));
  EXPECT_THAT(kept("app.cpp"), HasSubstr("fastScratch[393216]"));
  EXPECT_THAT(kept("app.cpp"), HasSubstr("Ethos_U65_High_End, Dedicated_Sram_384KB"));
  EXPECT_THAT(kept("app.s"), HasSubstr(".asciz \"ethos-u65-256\""));
}

TEST_F(Images, RecordTheirTargetInANote) {
  CARINA_NEED_CROSS_COMPILER();
  const auto image = require(build("dense", "ethos-u85-256", "Dedicated_Sram_256KB", "corstone-320"));
  const auto note = platform::readImageNote(asBytes(image.elf));
  ASSERT_TRUE(note.has_value());
  EXPECT_EQ(note->platform, "corstone-320");
  EXPECT_EQ(note->core, "cortex-m33");
  EXPECT_EQ(note->target, "ethos-u85-256");
  EXPECT_EQ(note->systemConfig, "Ethos_U85_SYS_DRAM_Mid");
  EXPECT_EQ(note->memoryMode, "Dedicated_Sram_256KB");
  for (size_t size : {size_t{0}, size_t{40}, image.elf.size() / 2, image.elf.size() - 1})
    EXPECT_FALSE(platform::readImageNote(asBytes(image.elf).first(size)).has_value()) << size;
  std::string broken = image.elf;
  const size_t at = broken.find(std::string("Carina\0\0corstone", 16));
  ASSERT_NE(at, std::string::npos);
  for (const size_t field : {at - 12, at - 8, at - 4, at}) {
    std::string changed = broken;
    changed[field + 3] = '\x7f';
    EXPECT_FALSE(platform::readImageNote(asBytes(changed)).has_value()) << field;
  }
}

TEST_F(Images, ReportAMissingCompilerOrKit) {
  ASSERT_TRUE(compileNetwork("dense", "ethos-u55-128", "", folder_ / "x.pte").ok());
  ImageOptions options = imageOptions(folder_ / "x.pte", "corstone-300");
  options.kit = folder_.path();
  auto image = buildImage(options);
  ASSERT_FALSE(image.ok());
  EXPECT_THAT(image.error().str(), HasSubstr("there is no firmware kit in"));
  CARINA_NEED_CROSS_COMPILER();
  options.kit = CARINA_KIT;
  options.source.core = "cortex-m0";
  image = buildImage(options);
  ASSERT_FALSE(image.ok());
  EXPECT_THAT(image.error().str(), HasSubstr("it has: cortex-m33, cortex-m55"));
  options.source.core = "cortex-m33";
  options.compiler = "arm-nobody-g++";
  image = buildImage(options);
  ASSERT_FALSE(image.ok());
  EXPECT_THAT(image.error().str(), HasSubstr("arm-nobody-g++ cannot be started"));
  EXPECT_THAT(image.error().str(), HasSubstr("install the cross compiler"));
}

TEST_F(Images, ProgramsMayHaveAnyName) {
  CARINA_NEED_CROSS_COMPILER();
  const auto odd = folder_ / "a \"b\" %s\n#error\\";
  ASSERT_TRUE(compileNetwork("dense", "ethos-u55-128", "", folder_ / "x.pte").ok());
  std::filesystem::copy_file(folder_ / "x.pte", odd);
  require(buildImage(imageOptions(odd, "corstone-300")));
}

TEST_F(Images, ReportWhichRegionOverflows) {
  CARINA_NEED_CROSS_COMPILER();
  ASSERT_TRUE(compileNetwork("dense", "ethos-u85-128", "", folder_ / "x.pte").ok());
  ImageOptions options = imageOptions(folder_ / "x.pte", "corstone-320");
  options.plan.stackBytes = 64 * 1024;
  EXPECT_THAT(errorOf(buildImage(options)), HasSubstr("bytes more than DTCM of corstone-320 has"));
}

TEST_F(Images, LinkerMapsAreReadByComponent) {
  const auto sizes =
      require(readMap("\nLinker script and memory map\n\n"
                      ".vectors        0x10000000      0x140\n"
                      " *(.vectors)\n"
                      " .vectors       0x10000000      0x140 /kit/libcarina_runner.a(startup.cpp.obj)\n\n"
                      ".text           0x10000140      0x124\n"
                      " .text.a_name_that_is_too_long_for_its_column\n"
                      "                0x10000140      0x100 /kit/libcarina_runtime.a(softmax.cpp.obj)\n"
                      "                0x10000140                a_name\n"
                      " *fill*         0x10000240        0x4 \n"
                      " .text          0x10000244       0x20 /usr/lib/libc_nano.a(libc_a-memcpy.o)\n\n"
                      ".stack          0x30000000     0x1000\n"
                      ".bss            0x30001000       0x10\n"
                      " .bss.x         0x30001000       0x10 /tmp/app.o\n"
                      ".program        0x70000000     0x2fc0\n"
                      " .carina.program\n"
                      "                0x70000000     0x2fc0 /tmp/app.o\n"));
  EXPECT_EQ(sizes.total.text, 0x140 + 0x124);
  EXPECT_EQ(sizes.stackBytes, 0x1000);
  EXPECT_EQ(sizes.ramBytes(), 0x1010);
  EXPECT_EQ(sizes.components.front().name, "startup and faults");
  EXPECT_EQ(sizes.components[1].name, "CPU kernels");
  EXPECT_EQ(sizes.components[1].text, 0x100);
  EXPECT_FALSE(readMap("no map").ok());
}

}  // namespace
}  // namespace carina::firmware
