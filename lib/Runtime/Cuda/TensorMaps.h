//===- TensorMaps.h - Tensor maps that the driver has encoded -------------===//
#pragma once

#include "fp4/Runtime/Device.h"

#include <array>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace fp4::rt {

/// Maps by their requests. A map depends on its request alone, and calls of a model repeat them:
/// weights stay where they are, and an allocator gives activations the same addresses again.
class TensorMaps {
public:
  using Map = std::array<std::byte, 128>;
  using Key = std::array<uint64_t, 21>;

  /// The key of a request; none for maps of im2col mode, which are not kept.
  static std::optional<Key> keyOf(const TensorMapRequest &request);

  bool find(const Key &key, std::span<std::byte, 128> out);
  void keep(const Key &key, std::span<const std::byte, 128> map);

private:
  struct Hash {
    size_t operator()(const Key &key) const;
  };
  static constexpr size_t kMost = 4096; ///< 1.3 MB; then all are encoded again

  std::mutex mutex_; ///< guards the maps
  std::unordered_map<Key, Map, Hash> maps_;
};

} // namespace fp4::rt
