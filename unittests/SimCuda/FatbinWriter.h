//===- FatbinWriter.h - Fat binaries for tests, as nvcc lays them out -----===//
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>
#include <zstd.h>

namespace fp4::simcuda::test {

enum class Compression { None, Zstd, Lz4 };

class FatbinWriter {
public:
  /// `lz4` is the compressed block; zstd is compressed here.
  void addPtx(const std::string &text, unsigned architecture, Compression how = Compression::Zstd,
              const std::string &lz4 = "") {
    std::string payload = how == Compression::None ? text : lz4;
    if (how == Compression::Zstd) {
      payload.resize(ZSTD_compressBound(text.size()));
      payload.resize(ZSTD_compress(payload.data(), payload.size(), text.data(), text.size(), 3));
    }
    uint64_t flag = how == Compression::Zstd ? 0x8000 : how == Compression::Lz4 ? 0x2000 : 0;
    add(1, payload, architecture, flag, text.size());
  }
  void addCubin(unsigned architecture) { add(2, std::string(64, 'c'), architecture, 0, 0); }

  std::string bytes() const {
    std::string out;
    put<uint32_t>(out, 0xBA55ED50);
    put<uint16_t>(out, 1);
    put<uint16_t>(out, 16);
    put<uint64_t>(out, entries.size());
    return out + entries;
  }

private:
  template <typename T> static void put(std::string &out, T value) {
    out.append(reinterpret_cast<const char *>(&value), sizeof(T));
  }
  void add(uint16_t kind, std::string payload, unsigned architecture, uint64_t flags,
           uint64_t textBytes) {
    auto used = static_cast<uint32_t>(payload.size());
    payload.resize((payload.size() + 7) / 8 * 8);
    put<uint16_t>(entries, kind);
    put<uint16_t>(entries, 0x101);
    put<uint32_t>(entries, 64);
    put<uint64_t>(entries, payload.size());
    put<uint32_t>(entries, flags ? used : 0);
    put<uint32_t>(entries, 0);
    put<uint32_t>(entries, 9 << 16); // version 9.0
    put<uint32_t>(entries, architecture);
    put<uint64_t>(entries, 0);
    put<uint64_t>(entries, flags | 0x11);
    put<uint64_t>(entries, 0);
    put<uint64_t>(entries, flags ? textBytes : 0);
    entries += payload;
  }
  std::string entries;
};

} // namespace fp4::simcuda::test
