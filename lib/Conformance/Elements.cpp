//===- Elements.cpp - Elements of the matrices that the cases multiply ----===//

#include "Elements.h"

#include <algorithm>
#include <bit>

namespace fp4::cts {

int Element::valueOf(uint64_t code) const {
  static constexpr int kSigned[] = {0, 1, 2, -1, -2};
  const auto at = size_t(std::find(codes.begin(), codes.end(), code) - codes.begin());
  return name[0] == 'u' ? int(at) : kSigned[at];
}

double Element::decode(uint64_t code) const {
  if (bits == 64)
    return std::bit_cast<double>(code);
  if (bits == 16)
    return double(std::bit_cast<_Float16>(uint16_t(code)));
  return integer() ? double(int32_t(code)) : double(std::bit_cast<float>(uint32_t(code)));
}

std::vector<uint64_t> makeCodes(const Element &e, size_t count, Data data, uint32_t seed) {
  const size_t bytes = e.bits == 64 ? 8 : 4;
  const Bytes random = patternBytes(count * bytes, seed);
  std::vector<uint64_t> codes(count);
  for (size_t i = 0; i < count; ++i) {
    uint64_t &code = codes[i];
    std::memcpy(&code, &random[i * bytes], bytes);
    if (data == Data::Exact)
      code = e.codes[code % 5];
    else if (data == Data::Moderate)
      code = (code & e.moderate & e.mask()) | e.bias;
    else if (e.is("s32"))
      code = (code >> 31 ? 0x80000000 : 0x7FFFF000) | (code & 0xFFF);
    else
      code &= e.mask();
    if (data == Data::Bits && e.bits == 64 && code % 64 == 0)
      code |= 0x7FF0000000000000; // rare among the other codes
  }
  return codes;
}

uint64_t getBits(const Bytes &bytes, size_t at, unsigned bits) {
  uint64_t word = 0;
  std::memcpy(&word, &bytes[at / 8], std::max(bits / 8, 1u));
  return word >> at % 8 & (~uint64_t(0) >> (64 - bits));
}

void setBits(Bytes &bytes, size_t at, unsigned bits, uint64_t value) {
  const uint64_t mask = ~uint64_t(0) >> (64 - bits);
  uint64_t word = 0;
  std::memcpy(&word, &bytes[at / 8], std::max(bits / 8, 1u));
  word = (word & ~(mask << at % 8)) | (value & mask) << at % 8;
  std::memcpy(&bytes[at / 8], &word, std::max(bits / 8, 1u));
}

std::string registerList(const char *prefix, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "") + (prefix + std::to_string(i));
  return text + "}";
}

} // namespace fp4::cts
