//===- LineSocket.cpp - Lines of text over a socket -----------------------===//
#include "fp4/Support/LineSocket.h"

#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace fp4;

LineSocket::~LineSocket() { close(descriptor); }

bool LineSocket::send(std::string_view line) {
  std::string text(line);
  text += '\n';
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(descriptor, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    sent += size_t(count);
  }
  return true;
}

bool LineSocket::read() {
  std::array<char, 4096> bytes{};
  ssize_t count;
  do
    count = ::read(descriptor, bytes.data(), bytes.size());
  while (count < 0 && errno == EINTR);
  ended = count <= 0;
  if (!ended)
    buffer.append(bytes.data(), size_t(count));
  return !ended;
}

std::optional<std::string> LineSocket::receive() {
  size_t end;
  while ((end = buffer.find('\n')) == buffer.npos)
    if (!read())
      return std::nullopt;
  std::string line = buffer.substr(0, end);
  buffer.erase(0, end + 1);
  return line;
}

bool LineSocket::pending() {
  while (buffer.find('\n') == buffer.npos && !ended) {
    pollfd waits{descriptor, POLLIN, 0};
    if (poll(&waits, 1, 0) <= 0)
      return false;
    read();
  }
  return true;
}
