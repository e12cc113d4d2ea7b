// SPDX-License-Identifier: Apache-2.0
// Support queries as lines of text that another program can answer: one query per input line, one answer per
// output line.
//
//   OPERATOR target=NAME sram=BYTES KEY=VALUE ...
//     in= w= b= out= est=    tensor: NxHxWxC:TYPE:FORMAT:QUANTIZATION (in, out, est: once per tensor;
//                            out: what the caller expects)
//     oq=                    quantization: ZEROPOINT/SCALE[/SCALE...][@DIMENSION]
//     pad=top,bottom,left,right  stride=x,y  win=x,y  pool=max|average  otype=TYPE  ofmt=FORMAT  axis=
//     sizes=a,b,... relu=lower,upper  alpha=  block=  new=N,H,W,C  perm=a,b,c,d  algo=nearest|bilinear
//   LEVEL<TAB>REASON
#pragma once

#include <string>
#include <string_view>

#include "ethosn/support/support.hpp"

namespace carina::ethosn::test {

struct TargetQuery {
  Target target;
  SupportQuery query;
};

std::string printQuery(const TargetQuery& query);
Result<TargetQuery> parseQuery(std::string_view line);
/// NxHxWxC:TYPE:FORMAT:QUANTIZATION
std::string printTensor(const TensorInfo& info);
TensorInfo parseTensor(const std::string& text);
std::string printAnswer(const SupportAnswer& answer);

}  // namespace carina::ethosn::test
