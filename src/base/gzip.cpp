// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/check.hpp"

namespace carina {

std::string gzipped(std::string_view contents) {
  constexpr int kGzip = 16, kMemoryLevel = 8;
  z_stream stream{};
  const int begun = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, kMemoryLevel,
                                 Z_DEFAULT_STRATEGY);
  CARINA_CHECK(begun == Z_OK, "zlib can be started");
  std::string file;
  std::string part(size_t{1} << 16, '\0');
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0 && !contents.empty()) {
      const size_t n = std::min<size_t>(contents.size(), std::numeric_limits<uInt>::max());
      // zlib does not write to its input.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
      stream.avail_in = static_cast<uInt>(n);
      contents.remove_prefix(n);
    }
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    state = deflate(&stream, contents.empty() ? Z_FINISH : Z_NO_FLUSH);
    CARINA_CHECK(state == Z_OK || state == Z_STREAM_END, "zlib compresses");
    file.append(part, 0, part.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return file;
}

}  // namespace carina
