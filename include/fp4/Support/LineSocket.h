//===- LineSocket.h - Lines of text over a socket -------------------------===//
//
// The two processes of a debugger talk in lines, each one JSON object.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fp4 {

class LineSocket {
public:
  /// Takes the descriptor over.
  explicit LineSocket(int descriptor) : descriptor(descriptor) {}
  ~LineSocket();
  LineSocket(const LineSocket &) = delete;

  int number() const { return descriptor; }
  /// Sends a line; false when the other side is gone.
  bool send(std::string_view line);
  /// Waits for the next line; none when the other side is gone.
  std::optional<std::string> receive();
  /// Returns true when receive() has a line, or the end, without waiting.
  bool pending();

private:
  bool read(); ///< more bytes; false at the end
  int descriptor;
  std::string buffer;
  bool ended = false;
};

} // namespace fp4
