// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as the pickle of a torch.save() archive.
#include <string>

#include "base/file.hpp"
#include "base/zip.hpp"
#include "pt2/pickle.hpp"
#include "target.hpp"

namespace carina::pickle_fuzz {

CARINA_FUZZ_TARGET(pickle) {
  const std::vector<std::pair<std::string, std::string>> members{
      {"archive/data.pkl", std::string(reinterpret_cast<const char*>(data), size)},
      {"archive/data/0", std::string(96, '\1')},
      {"archive/data/1", std::string(24, '\2')}};
  const auto archive = std::make_shared<const std::string>(writeZip(members));
  (void)pt2::readPickledArguments(asBytes(*archive), archive);
  const auto tensors = pt2::readPickledTensors(asBytes(*archive), archive);
  if (!tensors.ok()) return 0;
  Budget views(size_t{1} << 20);
  for (const auto& tensor : *tensors) (void)pt2::denseTensor(tensor.tensor, views);
  return 0;
}

}  // namespace carina::pickle_fuzz
