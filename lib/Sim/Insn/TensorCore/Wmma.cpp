//===- Wmma.cpp - wmma: matrices of a warp in opaque fragments ------------===//
//
// PTX ISA, "wmma". The lane of each element is not specified, so the layout is ours: element i of a
// matrix, row major, lies in lane i % 32, place i / 32 of its registers; fragments with room for
// more repeat it. Elements below 8 bits count by bytes: a row of A and a column of B are
// contiguous. Arithmetic as in MmaSync.cpp; an fp16 result of an fp32 addend is rounded twice,
// toward zero to fp32 and then to the nearest fp16, as ptxas has it done.
//
//===----------------------------------------------------------------------===//
#include "fp4/Numerics/DenseRow.h"
#include "Sim/Decode/Decode.h"
#include "Sim/Insn/Memory/MemoryAccess.h"
#include "Sim/Insn/Scalar/Floats.h"
#include "fp4/ISA/SmemDescriptor.h"
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
using namespace numerics;
namespace {

using hw::MmaType;

struct Shape {
  unsigned m = 0, n = 0, k = 0;
};

Shape shapeOf(std::string_view text) {
  if (text == "m8n32k16")
    return {8, 32, 16};
  if (text == "m32n8k16")
    return {32, 8, 16};
  if (text == "m8n8k4")
    return {8, 8, 4};
  if (text == "m8n8k32")
    return {8, 8, 32};
  if (text == "m8n8k128")
    return {8, 8, 128};
  return {16, 16, text == "m16n16k8" ? 8u : 16u};
}

MmaType typeOf(std::string_view text) {
  for (MmaType known : {MmaType::BF16, MmaType::TF32, MmaType::U8, MmaType::S8})
    if (text == hw::stringify(known))
      return known;
  return MmaType::F16;
}

/// One place of a fragment: `bytes` bytes of a register of a lane.
std::byte *place(ExecContext &cx, const Operand &fragment, unsigned bytes, unsigned lane,
                 unsigned slot) {
  const unsigned width = bytes == 8 ? 8 : 4, perRegister = width / bytes;
  const Operand &reg = cx.elements(fragment)[slot / perRegister];
  return cx.dst<std::byte>(reg) + width * lane + slot % perRegister * bytes;
}

/// A matrix of `elements` elements out of a fragment.
std::vector<uint8_t> gather(ExecContext &cx, const Operand &fragment, unsigned elements,
                            unsigned bytes) {
  std::vector<uint8_t> out(elements * bytes);
  for (unsigned i = 0; i < elements; ++i)
    std::memcpy(&out[i * bytes], place(cx, fragment, bytes, i % 32, i / 32), bytes);
  return out;
}

/// Tells the observer of one place of a fragment.
template <bool Store>
void report(ExecContext &cx, const Insn &insn, const Operand &data, unsigned slot,
            const std::array<uint64_t, 32> &addresses) {
  if (!cx.observer)
    return;
  const auto &how = insn.as<WmmaTransferModifiers>();
  const unsigned bytes = how.bytes;
  const Space space = how.space;
  const LaneAddresses lanes(cx, addresses.data(), bytes);
  const auto same = [&](unsigned lane, const std::byte *there) {
    return std::memcmp(there, place(cx, data, bytes, lane, slot), bytes) == 0;
  };
  reportAccess(cx, lanes, Store ? AccessKind::Write : AccessKind::Read,
               {space, MemOrder::Weak, Scope::None, bytes,
                Store ? unchangedLanes(cx, space, lanes, bytes, same) : 0});
}

/// Loads or stores every place of a fragment. op: fragment at `data`, address, stride in elements.
template <bool Store>
Outcome transfer(ExecContext &cx, const Insn &insn, const Operand &data, const Operand &address) {
  if (!cx.converged())
    return Outcome::Retry;
  const auto &how = insn.as<WmmaTransferModifiers>();
  const unsigned rows = how.rows, columns = how.columns, bytes = how.bytes;
  const Space space = how.space;
  const bool columnMajor = how.columnMajor;
  const uint64_t stride = insn.op[2]    ? cx.scalar(insn.op[2]) / how.perByte
                          : columnMajor ? rows
                                        : columns;
  const unsigned elements = rows * columns;
  const unsigned width = bytes == 8 ? 8 : 4;
  const unsigned slots = Store ? elements / 32 : cx.elementCount(data) * width / bytes;
  for (unsigned slot = 0; slot < slots; ++slot) {
    std::array<uint64_t, 32> addresses{};
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned i = (slot * 32 + lane) % elements, row = i / columns, column = i % columns;
      addresses[lane] = cx.address(address, int(lane)) +
                        bytes * (columnMajor ? column * stride + row : row * stride + column);
    }
    report<Store>(cx, insn, data, slot, addresses);
    for (unsigned lane = 0; lane < 32; ++lane) {
      std::byte *at = place(cx, data, bytes, lane, slot);
      if (auto *to = Store ? cx.writable(space, addresses[lane], bytes, bytes, int(lane)) : nullptr)
        std::memcpy(to, at, bytes);
      else if (auto *from =
                   Store ? nullptr : cx.readable(space, addresses[lane], bytes, bytes, int(lane)))
        std::memcpy(at, from, bytes);
      else
        return Outcome::Error;
    }
  }
  return Outcome::Next;
}

Outcome load(ExecContext &cx, const Insn &insn) {
  return transfer<false>(cx, insn, insn.op[0], insn.op[1]);
}
Outcome store(ExecContext &cx, const Insn &insn) {
  return transfer<true>(cx, insn, insn.op[1], insn.op[0]);
}

/// `count` elements from `first` on of each row of A, or of each column of B, in rows of 32 bytes.
std::vector<uint8_t> operandRows(const std::vector<uint8_t> &matrix, unsigned rows, unsigned k,
                                 unsigned bytes, bool ofB, unsigned first, unsigned count) {
  std::vector<uint8_t> out(rows * hw::mmaRowBytes);
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned i = 0; i < count; ++i) {
      const unsigned at = first + i;
      std::memcpy(&out[row * hw::mmaRowBytes + i * bytes],
                  &matrix[(ofB ? at * rows + row : row * k + at) * bytes], bytes);
    }
  return out;
}

std::vector<FactorRow> factors(MmaType type, const std::vector<uint8_t> &bytes) {
  std::vector<FactorRow> rows(bytes.size() / hw::mmaRowBytes);
  for (size_t i = 0; i < rows.size(); ++i)
    decodeFactors(type, &bytes[i * hw::mmaRowBytes], true, false, rows[i]);
  return rows;
}

/// Adds the products of `k` elements.
void multiply(const WmmaModifiers &how, unsigned k, const std::vector<uint8_t> &a,
              const std::vector<uint8_t> &b, std::vector<uint32_t> &cells) {
  const unsigned m = how.m, n = how.n;
  const MmaType aType = how.aType, bType = how.bType;
  if (aType == MmaType::S8 || aType == MmaType::U8) {
    for (unsigned i = 0; i < m * n; ++i)
      cells[i] = integerElement(&a[i / n * hw::mmaRowBytes], &b[i % n * hw::mmaRowBytes],
                                aType == MmaType::S8, bType == MmaType::S8, how.saturate, cells[i]);
    return;
  }
  const DenseRows rows(factors(aType, a), k);
  const DenseColumns columns(factors(bType, b), k);
  const bool half = how.halfC && how.halfD;
  const DenseRowOptions options{fractionBits(aType) + fractionBits(bType),
                                half ? hw::AccumulatorType::F16 : hw::AccumulatorType::F32,
                                {}};
  std::vector<DenseRow> products(m);
  for (unsigned row = 0; row < m; ++row)
    products[row] = {&cells[row * n]};
  denseRows(rows, columns, products, options);
}

Outcome product(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  const auto &how = insn.as<WmmaModifiers>();
  const unsigned m = how.m, n = how.n, k = how.k;
  const unsigned bytes = how.aType == MmaType::TF32                             ? 4
                         : how.aType == MmaType::S8 || how.aType == MmaType::U8 ? 1
                                                                                : 2;
  const auto a = gather(cx, insn.op[1], m * k, bytes), b = gather(cx, insn.op[2], k * n, bytes);
  const unsigned cBytes = how.halfC ? 2 : 4, dBytes = how.halfD ? 2 : 4;
  const auto c = gather(cx, insn.op[3], m * n, cBytes);
  std::vector<uint32_t> cells(m * n);
  for (unsigned i = 0; i < m * n; ++i) {
    std::memcpy(&cells[i], &c[i * cBytes], cBytes);
    if (how.halfC && !how.halfD)
      cells[i] = std::bit_cast<uint32_t>(f16ToFloat(uint16_t(cells[i])));
  }
  // ptxas has tf32 multiplied four k at a time, on sm_80 to sm_120 (HMMA.1684).
  const unsigned step = bytes == 4 ? 4 : k;
  for (unsigned first = 0; first < k; first += step)
    multiply(how, step, operandRows(a, m, k, bytes, false, first, step),
             operandRows(b, n, k, bytes, true, first, step), cells);
  if (how.halfD && !how.halfC)
    for (uint32_t &cell : cells)
      cell = floatToF16(std::bit_cast<float>(cell));
  for (unsigned i = 0; i < m * n; ++i)
    std::memcpy(place(cx, insn.op[0], dBytes, i % 32, i / 32), &cells[i], dBytes);
  ++cx.cluster().mmas;
  return Outcome::Next;
}

/// Products of small integers: rows of bytes of K.
Outcome smallMma(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  const auto &how = insn.as<SmallWmmaModifiers>();
  constexpr unsigned bytes = 16; // of K
  const auto a = operandRows(gather(cx, insn.op[1], 8 * bytes, 1), 8, bytes, 1, false, 0, bytes);
  const auto b = operandRows(gather(cx, insn.op[2], 8 * bytes, 1), 8, bytes, 1, true, 0, bytes);
  const auto c = gather(cx, insn.op[3], 64, 4);
  for (unsigned i = 0; i < 64; ++i) {
    uint32_t cell;
    std::memcpy(&cell, &c[4 * i], 4);
    const uint8_t *row = &a[i / 8 * hw::mmaRowBytes], *column = &b[i % 8 * hw::mmaRowBytes];
    cell = how.singleBits
               ? bitElement(row, column, how.exclusive, cell)
               : nibbleElement(row, column, how.aSigned, how.bSigned, how.saturate, cell);
    std::memcpy(place(cx, insn.op[0], 4, i % 32, i / 32), &cell, 4);
  }
  ++cx.cluster().mmas;
  return Outcome::Next;
}

/// Doubles: fused multiply-adds in the order of k.
Outcome doubleProduct(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const auto matrix = [&](unsigned op, unsigned elements) {
    std::vector<double> values(elements);
    const auto bytes = gather(cx, insn.op[op], elements, 8);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  const auto a = matrix(1, 32), b = matrix(2, 32);
  auto d = matrix(3, 64);
  std::fesetround(modes[size_t(insn.as<DoubleWmmaModifiers>().round)]);
  for (unsigned i = 0; i < 64; ++i)
    for (unsigned k = 0; k < 4; ++k)
      d[i] = fma64(a[i / 8 * 4 + k], b[k * 8 + i % 8], d[i]);
  std::fesetround(FE_TONEAREST);
  for (unsigned i = 0; i < 64; ++i)
    std::memcpy(place(cx, insn.op[0], 8, i % 32, i / 32), &d[i], 8);
  ++cx.cluster().mmas;
  return Outcome::Next;
}

/// Registers of a fragment that holds each element once.
int64_t registersOf(unsigned elements, unsigned bytes) {
  return int64_t(elements) * bytes / (bytes == 8 ? 256 : 128);
}

/// Elements in a byte, of types below 8 bits.
unsigned perByte(std::string_view type) {
  return type == "b1" ? 8 : type == "u4" || type == "s4" ? 2 : 1;
}

Status describeTransfer(BindContext &bind, const Operand &data) {
  const Shape shape = shapeOf(bind.match.text("shape"));
  const std::string_view operand = bind.match.text("operand"), type = bind.match.text("type");
  const bool factor = operand == "a" || operand == "b";
  const unsigned k = shape.k / perByte(type);
  auto &how = bind.insn.make<WmmaTransferModifiers>();
  how.rows = uint8_t(operand == "b" ? k : shape.m);
  how.columns = uint8_t(operand == "a" ? k : shape.n);
  how.bytes = type == "f64"                                       ? 8
              : type == "f16" || type == "bf16"                   ? 2
              : type == "u8" || type == "s8" || perByte(type) > 1 ? 1
                                                                  : 4;
  how.perByte = uint8_t(perByte(type));
  how.space = bind.match.space();
  how.columnMajor = bind.match.text("layout") == "col";
  if (perByte(type) > 1 && how.columnMajor != (operand == "b"))
    return bind.fail(fmt::format("{} of .{} must be .{}", operand == "b" ? "B" : "A", type,
                                 operand == "b" ? "col" : "row"));
  const unsigned elements = unsigned(how.rows) * how.columns;
  // fp16 fragments have 8 registers whatever the shape.
  const int64_t expected = factor && type == "f16" ? 8 : registersOf(elements, how.bytes);
  if (data.imm != expected)
    return bind.fail(fmt::format("expects {} registers, but got {}", expected, data.imm));
  return {};
}

} // namespace

Status bindWmmaLoad(BindContext &bind) {
  FP4_TRY(describeTransfer(bind, bind.insn.op[0]));
  return bind.use(load);
}

Status bindWmmaStore(BindContext &bind) {
  FP4_TRY(describeTransfer(bind, bind.insn.op[1]));
  return bind.use(store);
}

/// u4, s4 and b1: one shape each.
Status bindWmmaSmall(BindContext &bind) {
  const std::string_view a = bind.match.text("atype"), b = bind.match.text("btype");
  Insn &insn = bind.insn;
  insn.make<SmallWmmaModifiers>({bind.match.text("shape") == "m8n8k128", a == "s4", b == "s4",
                                 bind.match.text("bit") == "xor", bind.match.has("satfinite")});
  constexpr int64_t expected[] = {2, 1, 1, 2};
  for (unsigned i = 0; i < 4; ++i)
    if (insn.op[i].imm != expected[i])
      return bind.fail(fmt::format("{} of .{} expects {} registers, but got {}", "DABC"[i],
                                   bind.match.text("shape"), expected[i], insn.op[i].imm));
  return bind.use(smallMma);
}

Status bindWmmaDoubles(BindContext &bind) {
  const std::string_view round = bind.match.text("round");
  Insn &insn = bind.insn;
  insn.make<DoubleWmmaModifiers>({round == "rz"   ? Round::Zero
                                  : round == "rm" ? Round::Down
                                  : round == "rp" ? Round::Up
                                                  : Round::Nearest});
  constexpr int64_t expected[] = {2, 1, 1, 2};
  for (unsigned i = 0; i < 4; ++i)
    if (insn.op[i].imm != expected[i])
      return bind.fail(fmt::format("{} of .m8n8k4 expects {} registers, but got {}", "DABC"[i],
                                   expected[i], insn.op[i].imm));
  return bind.use(doubleProduct);
}

/// fp16 factors name the types of D and C only.
Status bindWmma(BindContext &bind) {
  const Shape shape = shapeOf(bind.match.text("shape"));
  const std::string_view a = bind.match.has("atype") ? bind.match.text("atype") : "f16";
  const std::string_view b = bind.match.has("btype") ? bind.match.text("btype") : "f16";
  const std::string_view d = bind.match.text("dtype"), c = bind.match.text("ctype");
  Insn &insn = bind.insn;
  if ((a == "u8" || a == "s8" ? b != "u8" && b != "s8" : a != b) || (a == "tf32") != (shape.k == 8))
    return bind.fail(
        fmt::format("does not multiply .{} by .{} in .{}", a, b, bind.match.text("shape")));
  const auto &how =
      insn.make<WmmaModifiers>({uint8_t(shape.m), uint8_t(shape.n), uint8_t(shape.k), typeOf(a),
                                typeOf(b), c == "f16", d == "f16", bind.match.has("satfinite")});
  const unsigned bytes = a == "tf32" ? 4 : a == "u8" || a == "s8" ? 1 : 2;
  const int64_t expected[] = {registersOf(shape.m * shape.n, how.halfD ? 2 : 4),
                              a == "f16" ? 8 : registersOf(shape.m * shape.k, bytes),
                              a == "f16" ? 8 : registersOf(shape.n * shape.k, bytes),
                              registersOf(shape.m * shape.n, how.halfC ? 2 : 4)};
  for (unsigned i = 0; i < 4; ++i)
    if (insn.op[i].imm != expected[i])
      return bind.fail(fmt::format("{} of .{} expects {} registers, but got {}", "DABC"[i],
                                   bind.match.text("shape"), expected[i], insn.op[i].imm));
  return bind.use(product);
}

} // namespace fp4::sim
