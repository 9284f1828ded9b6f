//===- ByteTarget.h - Changed bytes for one parser ------------------------===//
#pragma once

#include "Driver.h"
#include "Parsers.h"

namespace fp4::fuzz {

/// Files of a corpus, and seeds that are made here: bits flip, fields become edges of their range,
/// parts move. libFuzzer is better at it; this needs no instrumented build and repeats exactly.
class ByteTarget final : public Target {
public:
  explicit ByteTarget(const Parser &parser) : parser(parser) {}
  const char *name() const override { return parser.name; }
  bool load(const std::vector<std::filesystem::path> &corpus) override;
  std::string make(Random &random) override;
  void run(const std::string &input) override {
    parser.parse(std::as_bytes(std::span(input.data(), input.size())));
  }

private:
  const Parser &parser;
  std::vector<std::string> texts;
};

} // namespace fp4::fuzz
