//===- Lz4.cpp - The LZ4 block format -------------------------------------===//
//
// A block is a series of sequences: a token (literal length, match length), literals, a 16-bit
// distance back. Lengths of 15 go on in bytes until one is not 255. The last sequence has no match.
//
//===----------------------------------------------------------------------===//
#include "Lz4.h"
#include <algorithm>
#include <cstdint>

using namespace fp4::simcuda;

namespace {
class Reader {
public:
  explicit Reader(std::span<const std::byte> bytes) : bytes(bytes) {}
  bool done() const { return at == bytes.size(); }
  bool byte(uint8_t &value) {
    if (done())
      return false;
    value = static_cast<uint8_t>(bytes[at++]);
    return true;
  }
  bool length(size_t nibble, size_t &value) {
    value = nibble;
    for (uint8_t more = 255; nibble == 15 && more == 255; value += more)
      if (!byte(more))
        return false;
    return true;
  }
  bool copy(size_t count, std::string &out) {
    if (count > bytes.size() - at)
      return false;
    out.append(reinterpret_cast<const char *>(bytes.data() + at), count);
    at += count;
    return true;
  }

private:
  std::span<const std::byte> bytes;
  size_t at = 0;
};
} // namespace

bool fp4::simcuda::decompressLz4(std::span<const std::byte> block, size_t size, std::string &out) {
  Reader in(block);
  out.clear();
  while (!in.done()) {
    uint8_t token = 0, low = 0, high = 0;
    size_t literals = 0, match = 0;
    if (!in.byte(token) || !in.length(token >> 4, literals) || literals > size - out.size() ||
        !in.copy(literals, out))
      return false;
    if (in.done())
      break;
    if (!in.byte(low) || !in.byte(high) || !in.length(token & 15, match))
      return false;
    size_t distance = low | size_t(high) << 8;
    match += 4;
    if (distance == 0 || distance > out.size() || match > size - out.size())
      return false;
    for (size_t i = 0; i < match; ++i) // may overlap what it writes
      out += out[out.size() - distance];
  }
  return out.size() == size;
}
