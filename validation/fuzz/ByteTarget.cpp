//===- ByteTarget.cpp - Changed bytes for one parser ----------------------===//
#include "ByteTarget.h"
#include <algorithm>
#include <cstring>

using namespace fp4::fuzz;

namespace {

void overwrite(std::string &bytes, Random &random) {
  static const std::vector<uint64_t> edges = {0,      1,      0x7F,       0x80,       0xFF,
                                              0xFFFF, 0x8000, 0x7FFFFFFF, 0xFFFFFFFF, ~0ull,
                                              1ull << 63};
  const size_t size = size_t(1) << random.below(4);
  if (bytes.size() < size)
    return;
  size_t at = random.below(bytes.size() - size + 1);
  if (random.oneIn(2))
    at = at / size * size;
  uint64_t value = random.oneIn(3) ? random.next() : random.of(edges) + random.below(3) - 1;
  if (random.oneIn(4))
    value = random.below(bytes.size() + 16); // a place in the file
  std::memcpy(bytes.data() + at, &value, size);
}

void moveParts(std::string &bytes, Random &random) {
  const size_t from = random.below(bytes.size()), to = random.below(bytes.size());
  const size_t size = std::min(1 + random.below(64), bytes.size() - from);
  const std::string part = bytes.substr(from, size);
  if (random.oneIn(2))
    bytes.erase(from, size);
  bytes.insert(std::min(to, bytes.size()), part);
}

void repeatByte(std::string &bytes, Random &random) {
  const size_t at = random.below(bytes.size());
  bytes.insert(at, random.oneIn(10) ? 50000 : 1 + random.below(20), bytes[at]);
}

} // namespace

bool ByteTarget::load(const std::vector<std::filesystem::path> &corpus) {
  const std::vector<std::string> endings(parser.endings.begin(), parser.endings.end());
  for (const auto &file : filesOf(corpus, endings))
    texts.push_back(slurp(file));
  std::erase_if(texts, [](const std::string &text) { return text.empty(); });
  return !texts.empty();
}

std::string ByteTarget::make(Random &random) {
  std::string bytes = random.of(texts);
  for (size_t count = 1 + random.below(6); count > 0 && !bytes.empty(); --count) {
    switch (random.below(6)) {
    case 0:
    case 1:
      overwrite(bytes, random);
      break;
    case 2:
      bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
      break;
    case 3:
      moveParts(bytes, random);
      break;
    case 4:
      repeatByte(bytes, random);
      break;
    default:
      if (random.oneIn(4))
        bytes.resize(random.below(bytes.size() + 1));
    }
  }
  return bytes;
}
