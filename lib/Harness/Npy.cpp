//===- Npy.cpp - NumPy's .npy files ---------------------------------------===//
//
// The format: "\x93NUMPY", major, minor, header length (2 bytes little endian in version 1, else
// 4), a Python dictionary literal padded with blanks to a multiple of 64 bytes and ended by a
// newline, then the data. (NumPy documentation, "NEP 1".)
//
//===----------------------------------------------------------------------===//

#include "fp4/Harness/Npy.h"

#include "fp4/Support/InputFile.h"
#include "fp4/Support/OutputFile.h"

#include <cctype>
#include <cstring>
#include <fmt/format.h>

namespace fp4::harness {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

Error malformed(const std::string &name, const std::string &what) {
  return {ErrorKind::Usage, name + ": " + what, "write the file with numpy.save"};
}

/// Scans the header's dictionary: three keys, whose values are a string, a boolean and a tuple.
class HeaderScanner {
public:
  HeaderScanner(std::string_view text, const std::string &name) : text_(text), name_(name) {}

  Status scan(NpyArray &array);

private:
  Status entry(NpyArray &array);
  Status fail(const std::string &what) const {
    return tl::unexpected<Error>(
        malformed(name_, fmt::format("header offset {}: {}", position_, what)));
  }
  void blanks() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])))
      ++position_;
  }
  bool take(char c) {
    blanks();
    if (position_ >= text_.size() || text_[position_] != c)
      return false;
    ++position_;
    return true;
  }
  bool takeWord(std::string_view word) {
    blanks();
    if (!text_.substr(position_).starts_with(word))
      return false;
    position_ += word.size();
    return true;
  }
  Status string(std::string &value);
  Status tuple(std::vector<int64_t> &value);

  std::string_view text_;
  const std::string &name_;
  size_t position_ = 0;
  bool sawDescr_ = false, sawOrder_ = false, sawShape_ = false;
};

Status HeaderScanner::string(std::string &value) {
  blanks();
  char quote = position_ < text_.size() ? text_[position_] : '\0';
  size_t end = quote == '\'' || quote == '"' ? text_.find(quote, position_ + 1) : text_.npos;
  if (end == text_.npos)
    return fail("expects a quoted string");
  value = text_.substr(position_ + 1, end - position_ - 1);
  position_ = end + 1;
  return {};
}

Status HeaderScanner::tuple(std::vector<int64_t> &value) {
  if (!take('('))
    return fail("expects a tuple of sizes");
  constexpr int64_t kLimit = int64_t(1) << 40;
  while (!take(')')) {
    blanks();
    int64_t size = 0;
    size_t start = position_;
    while (position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_]))) {
      size = size * 10 + (text_[position_++] - '0');
      if (size > kLimit)
        return fail("expects sizes below 2^40");
    }
    if (position_ == start)
      return fail("expects a size");
    value.push_back(size);
    if (!take(',')) {
      if (take(')'))
        return {};
      return fail("expects ',' or ')' after a size");
    }
  }
  return {};
}

Status HeaderScanner::entry(NpyArray &array) {
  std::string key;
  FP4_TRY(string(key));
  if (!take(':'))
    return fail("expects ':' after a key");
  if (key == "descr") {
    sawDescr_ = true;
    blanks();
    if (position_ < text_.size() && text_[position_] == '[')
      return fail("structured arrays are not supported");
    return string(array.descr);
  }
  if (key == "shape") {
    sawShape_ = true;
    return tuple(array.shape);
  }
  if (key != "fortran_order")
    return fail("unknown key '" + key + "'");
  sawOrder_ = true;
  if (takeWord("False"))
    return {};
  if (takeWord("True"))
    return tl::unexpected<Error>(Error{ErrorKind::Usage,
                                       name_ + ": expects C order, but got fortran_order True",
                                       "save numpy.ascontiguousarray(x)"});
  return fail("expects False or True");
}

Status HeaderScanner::scan(NpyArray &array) {
  if (!take('{'))
    return fail("expects '{'");
  while (!take('}')) {
    FP4_TRY(entry(array));
    if (!take(',')) {
      if (take('}'))
        break;
      return fail("expects ',' or '}'");
    }
  }
  if (!sawDescr_ || !sawOrder_ || !sawShape_)
    return fail("expects the keys descr, fortran_order and shape");
  return {};
}

/// Bytes of one element of "<f4", "|u1", "<V2", ...; 0 when it is not one.
uint64_t itemBytes(std::string_view descr) {
  if (descr.size() < 3 || descr.size() > 4 || !std::strchr("<>|=", descr[0]))
    return 0;
  uint64_t bytes = 0;
  for (char c : descr.substr(2)) {
    if (!std::isdigit(static_cast<unsigned char>(c)))
      return 0;
    bytes = bytes * 10 + static_cast<uint64_t>(c - '0');
  }
  return bytes;
}

std::string encodeHeader(const NpyArray &array) {
  std::string shape;
  for (int64_t dim : array.shape)
    shape += fmt::format("{}, ", dim);
  if (array.shape.size() > 1)
    shape.resize(shape.size() - 2);
  else if (array.shape.size() == 1)
    shape.pop_back();
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", array.descr, shape);
  size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';
  std::string prefix(kMagic);
  prefix += '\x01';
  prefix += '\x00';
  prefix += static_cast<char>(header.size() & 255);
  prefix += static_cast<char>(header.size() >> 8);
  return prefix + header;
}

} // namespace

std::string NpyArray::str() const {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",) of '" : ") of '") + descr + "'";
}

Expected<NpyArray> parseNpy(std::span<const std::byte> bytes, const std::string &name) {
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  auto fail = [&](const std::string &what) { return tl::unexpected<Error>(malformed(name, what)); };
  if (!text.starts_with(kMagic))
    return fail("must start with the .npy magic string, but does not");
  if (text.size() < 12)
    return fail(fmt::format("ends inside the header, after {} bytes", text.size()));
  auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(text[i])); };
  size_t major = byte(6);
  if (major < 1 || major > 3)
    return fail(fmt::format("expects format version 1 to 3, but got {}", major));
  size_t start = major == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (major > 1)
    length |= byte(10) << 16 | byte(11) << 24;
  if (length > text.size() - start)
    return fail(fmt::format("header must be {} bytes long, but the file ends after {}", length,
                            text.size() - start));
  NpyArray array;
  FP4_TRY(HeaderScanner(text.substr(start, length), name).scan(array));
  uint64_t expected = itemBytes(array.descr);
  if (!expected)
    return fail("unknown element type '" + array.descr + "'");
  for (int64_t dim : array.shape)
    if (__builtin_mul_overflow(expected, static_cast<uint64_t>(dim), &expected))
      return fail("the shape has more elements than a file can hold");
  uint64_t found = text.size() - start - length;
  if (found != expected)
    return fail(
        fmt::format("{} must hold {} bytes of data, but got {}", array.str(), expected, found));
  auto data = bytes.subspan(start + length);
  array.data.assign(data.begin(), data.end());
  return array;
}

Expected<NpyArray> readNpy(const std::string &path) {
  FP4_ASSIGN(auto bytes, readBytes(path));
  return parseNpy(bytes, path);
}

Status writeNpy(const std::string &path, const NpyArray &array) {
  if (const char *special = kindOfSpecial(path))
    return makeError(ErrorKind::Usage,
                     fmt::format("'{}' must be a regular file, but it is {}", path, special),
                     "nothing was written");
  FP4_ASSIGN(auto file, OutputFile::open(path));
  const std::string header = encodeHeader(array);
  file->stream() << header;
  file->stream().write(reinterpret_cast<const char *>(array.data.data()),
                       static_cast<std::streamsize>(array.data.size()));
  return file->commit();
}

} // namespace fp4::harness
