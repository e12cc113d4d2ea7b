// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a bundled program and as a tensor data file: what can be read can be printed and
// round-trips through writing.
#include <cstdint>
#include <cstdlib>

#include "base/file.hpp"
#include "pte/bundle.hpp"
#include "pte/tensor_data.hpp"
#include "target.hpp"

namespace carina::pte_containers_fuzz {

CARINA_FUZZ_TARGET(pte_containers) {
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto bundle = pte::readBundle(bytes)) {
    (void)pte::printBundle(*bundle);
    for (const pte::BundleSuite& suite : bundle->suites) {
      for (const pte::BundleCase& entry : suite.cases) {
        for (const pte::BundleValue& value : entry.inputs) {
          if (const auto* tensor = std::get_if<pte::BundleTensor>(&value)) (void)pte::toTensor(*tensor);
        }
      }
    }
    const auto written = pte::writeBundle(*bundle);
    if (!written || pte::readBundle(asBytes(*written)).ok() == false) std::abort();
  }
  if (const auto tensors = pte::readTensorData(bytes)) {
    (void)pte::printTensorData(*tensors);
    const auto written = pte::writeTensorData(*tensors);
    if (!written || pte::readTensorData(asBytes(*written)).ok() == false) std::abort();
  }
  return 0;
}

}  // namespace carina::pte_containers_fuzz
