// SPDX-License-Identifier: Apache-2.0
#include "pt2/metadata.hpp"

#include <gtest/gtest.h>

namespace carina::pt2 {
namespace {

TEST(ModulePath, InnermostEntry) {
  EXPECT_EQ(
      modulePathOf("L__self__,,__main__.Net;L__self__layers.0,layers.0,torch.nn.modules.container.Sequential;"
                   "L__self__layers.0.0,layers.0.0,torch.nn.modules.conv.Conv2d"),
      "layers.0.0");
  EXPECT_EQ(modulePathOf("L__self__,,__main__.Net"), "");
  EXPECT_EQ(modulePathOf("L__self__,,Net;L__self__l@1,l,torch.nn.Linear"), "l");
}

TEST(ModuleClasses, OutermostFirst) {
  EXPECT_EQ(moduleClassesOf("L__self__,,__main__.Net;L__self__l.0,l.0,torch.nn.modules.conv.Conv2d"),
            (std::vector<ModuleClass>{{"", "__main__.Net"}, {"l.0", "torch.nn.modules.conv.Conv2d"}}));
  EXPECT_EQ(moduleClassesOf("140,L['self'].c[1],torch.nn.Conv2d"),
            (std::vector<ModuleClass>{{"c.1", "torch.nn.Conv2d"}}));
  for (const char* text : {"", ";", ",,", "a,b", "_empty_nn_module_stack_from_metadata_hook,_empty,x"}) {
    EXPECT_TRUE(moduleClassesOf(text).empty()) << text;
  }
}

TEST(ModulePath, PythonExpressionsOfTorch26) {
  EXPECT_EQ(modulePathOf("L['s'],L['s'],Net;L['s'].c,L['s'].c,torch.nn.modules.conv.Conv2d"), "c");
  EXPECT_EQ(modulePathOf("140,L['self'].layers['0'].conv[1],torch.nn.Conv2d"), "layers.0.conv.1");
  EXPECT_EQ(modulePathOf("140,L['a,b;c'].x,torch.nn.Conv2d"), "x");
}

TEST(ModulePath, MalformedTextsGiveNoPath) {
  for (const char* text :
       {"", ";", ",", "no fields", "a,L[", "a,L['x", "_empty_nn_module_stack_from_metadata_hook,_empty,x"}) {
    EXPECT_EQ(modulePathOf(text), "") << text;
  }
}

TEST(SourceLine, InnermostLineOutsideOfTorch) {
  EXPECT_EQ(sourceLineOf("  File \"/home/me/net.py\", line 14, in forward\n    return self.c(x)\n"
                         "  File \"/usr/lib/python3/dist-packages/torch/nn/modules/conv.py\", line 500, in "
                         "forward\n    x\n"),
            "/home/me/net.py:14");
  EXPECT_EQ(sourceLineOf("File \"a.py\", line 1, in f\n  x\nFile \"b.py\", line 22, in g\n  y"), "b.py:22");
  EXPECT_EQ(sourceLineOf("File \"/x/torch/a.py\", line 3, in f"), "/x/torch/a.py:3");
}

TEST(ModulePath, LongPathsAreCut) {
  const std::string dots(2000000, '.');
  EXPECT_EQ(modulePathOf("1," + dots + "a.b" + dots + "c,C"), "a.b.c");
  EXPECT_EQ(modulePathOf("1," + std::string(2000000, 'x') + ",C"), std::string(1024, 'x') + "...");
}

TEST(SourceLine, LongTracesTakeLinearTime) {
  std::string frames;
  for (int i = 0; i < 300000; ++i) frames += "File \"a";
  EXPECT_EQ(sourceLineOf(frames), "");
  frames.clear();
  for (int i = 0; i < 300000; ++i) frames += "File \"a\n";
  EXPECT_EQ(sourceLineOf(frames + "File \"b.py\", line 2, in f"), "b.py:2");
}

TEST(SourceLine, MalformedTextsGiveNothing) {
  for (const char* text :
       {"", "File \"", "File \"a.py\"", "File \"a.py\", line x", "File \"a\nb\", line 3"}) {
    EXPECT_EQ(sourceLineOf(text), "") << text;
  }
}

}  // namespace
}  // namespace carina::pt2
