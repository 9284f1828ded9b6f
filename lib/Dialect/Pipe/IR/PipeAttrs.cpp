//===- PipeAttrs.cpp - Roles of a kernel ----------------------------------===//
//
// Parsing, printing and verification of the role plan. One spelling of a role serves `#pipe.role`,
// `#pipe.role_plan` and the op `pipe.role`.
//
//===----------------------------------------------------------------------===//

#include "Schedules/Rasters.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

#define GET_ATTRDEF_CLASSES
#include "fp4/Dialect/Pipe/IR/PipeAttrs.cpp.inc"

void PipeDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp4/Dialect/Pipe/IR/PipeAttrs.cpp.inc"
      >();
}

/// Warps of a warpgroup, which setmaxnreg speaks to at once.
static constexpr int32_t kWarpsPerGroup = 4;
/// Warps of an SM; the warps of a CTA of a target are checked where its kernel is planned.
static constexpr int32_t kMaxWarps = 64;

//===----------------------------------------------------------------------===//
// Parsing and printing
//===----------------------------------------------------------------------===//

/// (C119)
static FailureOr<Engine> parseEngine(AsmParser &parser) {
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  if (std::optional<Engine> engine = symbolizeEngine(word))
    return *engine;
  return withNote(parser.emitError(loc)
                      << "engine must be tma, tensor, scale_copy, threads, bulk_store or "
                         "work_queue, but got "
                      << word,
                  "tma loads, tensor and scale_copy multiply, threads compute, bulk_store stores, "
                  "and work_queue asks for tiles; a second role of threads drives [threads] and is "
                  "auxiliary");
}

/// Parses what warpgroups have in turn; nothing if no `in_turn` stands there.
static FailureOr<Turns> parseTurns(AsmParser &parser) {
  StringRef word;
  if (failed(parser.parseOptionalKeyword("in_turn")))
    return Turns::Nothing;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Turns> turns = symbolizeTurns(word);
  if (turns && *turns != Turns::Nothing)
    return *turns;
  return withNote(parser.emitError(loc) // (C497)
                      << "'in_turn' must have stages or products behind it, but got " << word,
                  "with 'stages' a warpgroup has stages of its own, and with 'products' warpgroups "
                  "begin their MMAs one after the other; else leave 'in_turn' out");
}

FailureOr<RoleAttr> RoleAttr::parseHeader(AsmParser &parser) {
  StringRef name;
  int32_t first, end, registers = 0;
  SmallVector<Engine> engines;
  SMLoc loc = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    FailureOr<Engine> engine = parseEngine(parser);
    if (failed(engine))
      return failure();
    engines.push_back(*engine);
    return success();
  };
  if (parser.parseKeyword(&name) || parser.parseKeyword("warps") || parser.parseInteger(first) ||
      parser.parseKeyword("to") || parser.parseInteger(end) || parser.parseKeyword("drives") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("registers")) && parser.parseInteger(registers))
    return failure();
  FailureOr<Turns> turns = parseTurns(parser);
  if (failed(turns))
    return failure();
  bool auxiliary = succeeded(parser.parseOptionalKeyword("auxiliary"));
  bool whole = succeeded(parser.parseOptionalKeyword("whole"));
  auto role = RoleAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), name,
                                   first, end, engines, registers, *turns, auxiliary, whole);
  if (!role)
    return failure();
  return role;
}

void RoleAttr::printHeader(AsmPrinter &printer) const {
  printer << getName() << " warps " << getFirstWarp() << " to " << getEndWarp() << " drives [";
  llvm::interleaveComma(getEngines(), printer,
                        [&](Engine engine) { printer << stringifyEngine(engine); });
  printer << "]";
  if (getRegisters())
    printer << " registers " << getRegisters();
  if (getTurns() != Turns::Nothing)
    printer << " in_turn " << stringifyTurns(getTurns());
  if (getAuxiliary())
    printer << " auxiliary";
  if (getWhole())
    printer << " whole";
}

Attribute RoleAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<RoleAttr> role = parseHeader(parser);
  if (failed(role) || parser.parseGreater())
    return {};
  return *role;
}

void RoleAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printHeader(printer);
  printer << '>';
}

Attribute DistributionAttr::parse(AsmParser &parser, Type) {
  StringRef word;
  SMLoc loc;
  if (parser.parseLess() || parser.getCurrentLocation(&loc) || parser.parseKeyword(&word))
    return {};
  std::optional<FragmentKind> kind = symbolizeFragmentKind(word);
  if (!kind) {
    withNote(
        parser.emitError(loc) << "distribution must be wgmma, mma_sync, lanes or columns, but got "
                              << word,
        "wgmma and mma_sync share a tile as their accumulators, lanes are rows of threads, and "
        "pipe.transpose makes columns");
    return {};
  }
  return parser.parseGreater() ? DistributionAttr() : get(parser.getContext(), *kind);
}

void DistributionAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyFragmentKind(getKind()) << '>';
}

Attribute RolePlanAttr::parse(AsmParser &parser, Type) {
  SmallVector<RoleAttr> roles;
  SMLoc loc = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    FailureOr<RoleAttr> role = RoleAttr::parseHeader(parser);
    if (failed(role))
      return failure();
    roles.push_back(*role);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseOne))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), roles);
}

void RolePlanAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getRoles(), printer, [&](RoleAttr role) { role.printHeader(printer); });
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

bool RoleAttr::drives(Engine engine) const { return llvm::is_contained(getEngines(), engine); }

bool RoleAttr::isElected() const { return !drives(Engine::Threads); }

bool RoleAttr::isOneWarpgroup() const { return getNumWarps() == kWarpsPerGroup; }

bool DistributionAttr::isFragment() const {
  return getKind() == FragmentKind::Wgmma || getKind() == FragmentKind::MmaSync;
}

RoleAttr RoleAttr::withWhole(bool whole) const {
  return RoleAttr::get(getContext(), getName(), getFirstWarp(), getEndWarp(), getEngines(),
                       getRegisters(), getTurns(), getAuxiliary(), whole);
}

Engine RoleAttr::getCompletion(Engine engine) const {
  if (engine == Engine::Tma)
    return engine;
  if (!isElected())
    return Engine::Threads;
  return engine == Engine::ScaleCopy ? Engine::Tensor : engine;
}

int32_t RoleAttr::getArrivals(Engine completion) const {
  return completion == Engine::Threads ? getStageThreads() : 1;
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// (C119) The warps of a role.
static LogicalResult verifyWarps(EmitError emitError, StringRef name, int32_t first, int32_t end) {
  if (first < 0 || end <= first)
    return withNote(emitError() << "role " << name << " must have at least one warp, but got warps "
                                << first << " to " << end,
                    "the second number is the first warp behind the role: 'warps 4 to 8' are four");
  if (end > kMaxWarps)
    return withNote(emitError() << "role " << name << " must end within " << kMaxWarps
                                << " warps, but got warps " << first << " to " << end,
                    "give the role fewer warps, or lower numbers");
  return success();
}

/// (C497) The warpgroups of a role that takes turns.
static LogicalResult verifyTurns(EmitError emitError, StringRef name, int32_t first, int32_t end,
                                 ArrayRef<Engine> engines, Turns turns) {
  bool drivesTensor = llvm::is_contained(engines, Engine::Tensor);
  bool drivesThreads = llvm::is_contained(engines, Engine::Threads);
  if (turns == Turns::Stages && (engines.size() != 1 || !drivesThreads)) // (C497)
    return withNote(emitError() << "role " << name
                                << " in turn must drive threads and nothing else",
                    "write 'drives [threads]', or leave 'in_turn' out");
  if (turns == Turns::Products &&
      (engines.size() != 2 || !drivesTensor || !drivesThreads)) // (C497)
    return withNote(emitError() << "role " << name
                                << " with products in turn must drive tensor and threads",
                    "write 'drives [tensor, threads]', or leave 'in_turn' out");
  int32_t warps = end - first;
  if (first % kWarpsPerGroup || warps % kWarpsPerGroup || warps == kWarpsPerGroup) // (C497)
    return withNote(emitError() << "role " << name
                                << " in turn must have several warpgroups, but got warps " << first
                                << " to " << end,
                    "give the role 8 or more warps, a multiple of 4, from a multiple of 4 on, or "
                    "leave 'in_turn' out");
  return success();
}

/// (C626) The warp of a role that stays together.
static LogicalResult verifyWhole(EmitError emitError, StringRef name, int32_t warps,
                                 ArrayRef<Engine> engines) {
  auto parts = [](Engine engine) {
    return engine == Engine::Threads || engine == Engine::BulkStore;
  };
  if (warps == 1 && !engines.empty() && llvm::none_of(engines, parts))
    return success();
  return withNote(emitError() << "role " << name // (C626)
                              << " that is whole must have one warp and issue for engines alone",
                  "leave 'whole' out where threads compute, or where the role stores");
}

/// (C119) The engines of a role, and its warps, of which one thread issues for most engines.
static LogicalResult verifyEngines(EmitError emitError, StringRef name, int32_t warps,
                                   ArrayRef<Engine> engines) {
  llvm::SmallSet<Engine, 4> seen;
  for (Engine engine : engines)
    if (!seen.insert(engine).second)
      return withNote(emitError() << "role " << name << " must name each engine once, but got "
                                  << stringifyEngine(engine) << " twice",
                      "leave the second one out");
  bool single = !engines.empty() && !seen.contains(Engine::Threads);
  for (Engine engine : {Engine::Tma, Engine::ScaleCopy, Engine::WorkQueue})
    single |= seen.contains(engine);
  // The second warp copies scales (ScaleWarps.h).
  bool mayHaveTwo =
      seen.size() == 2 && seen.contains(Engine::Tensor) && seen.contains(Engine::ScaleCopy);
  if (!single || warps == 1 || (mayHaveTwo && warps == 2))
    return success();
  return withNote(
      emitError() << "role " << name << " must have one warp" << (mayHaveTwo ? " or two" : "")
                  << ", whose elected thread issues for its engines, but got " << warps,
      "one thread issues copies and MMAs: leave one warp to them, and give 'threads' to another "
      "role");
}

/// (C631) The engines of an auxiliary role.
static bool mayBeAuxiliary(ArrayRef<Engine> engines) {
  auto isOfThreads = [](Engine engine) {
    return engine == Engine::Threads || engine == Engine::Tensor;
  };
  return llvm::is_contained(engines, Engine::Threads) && llvm::all_of(engines, isOfThreads);
}

LogicalResult RoleAttr::verify(EmitError emitError, StringRef name, int32_t first, int32_t end,
                               ArrayRef<Engine> engines, int32_t registers, Turns turns,
                               bool auxiliary, bool whole) { // (C119)
  if (name.empty())
    return withNote(emitError() << "role must have a name", "write a name before 'warps'");
  if (failed(verifyWarps(emitError, name, first, end)))
    return failure();
  if (engines.empty() && !registers)
    return withNote(
        emitError() << "role " << name << " must drive an engine",
        "name what the operations of the role are issued by, such as 'drives [threads]', or the "
        "registers that the role gives away");
  if (failed(verifyEngines(emitError, name, end - first, engines)))
    return failure();
  if (registers && (registers % 8 || registers < 24 || registers > 256))
    return withNote(
        emitError() << "registers of role " << name
                    << " must be a multiple of 8 from 24 to 256, but got " << registers,
        "setmaxnreg takes no other numbers; without 'registers' a role has those of the launch");
  if (whole && failed(verifyWhole(emitError, name, end - first, engines)))
    return failure();
  if (auxiliary && !mayBeAuxiliary(engines)) // (C631)
    return withNote(
        emitError() << "role " << name
                    << " that is auxiliary must drive threads, and at most tensor beside",
        "leave 'auxiliary' out: one role drives each of the other engines");
  return turns == Turns::Nothing ? success()
                                 : verifyTurns(emitError, name, first, end, engines, turns);
}

//===----------------------------------------------------------------------===//
// Role plans
//===----------------------------------------------------------------------===//

RoleAttr RolePlanAttr::getDriver(Engine engine) const {
  for (RoleAttr role : getRoles())
    if (role.drives(engine) && !role.getAuxiliary())
      return role;
  return {};
}

RoleAttr RolePlanAttr::getAuxiliary() const {
  for (RoleAttr role : getRoles())
    if (role.getAuxiliary() && !role.drives(Engine::Tensor))
      return role;
  return {};
}

SmallVector<RoleAttr> RolePlanAttr::getSlices() const {
  return llvm::filter_to_vector(
      getRoles(), [](RoleAttr role) { return role.getAuxiliary() && role.drives(Engine::Tensor); });
}

RoleAttr RolePlanAttr::getRole(StringRef name) const {
  for (RoleAttr role : getRoles())
    if (role.getName() == name)
      return role;
  return {};
}

int32_t RolePlanAttr::getNumThreads() const {
  int32_t warps = 0;
  for (RoleAttr role : getRoles())
    warps = std::max(warps, role.getEndWarp());
  return 32 * warps;
}

/// (C142) Two roles share nothing.
static LogicalResult verifyDisjoint(EmitError emitError, RoleAttr x, RoleAttr y) {
  if (x.getName() == y.getName())
    return withNote(emitError() << "roles must have different names, but got " << x.getName()
                                << " twice",
                    "rename one of them, or let one role drive the engines of both");
  if (x.getFirstWarp() < y.getEndWarp() && y.getFirstWarp() < x.getEndWarp())
    return withNote(
        emitError() << "roles must have different warps, but " << x.getName() << " and "
                    << y.getName() << " share warp "
                    << std::max(x.getFirstWarp(), y.getFirstWarp()),
        "the second number is the first warp behind a role, where the next one may begin");
  for (Engine engine : x.getEngines())
    if (y.drives(engine) && !x.getAuxiliary() && !y.getAuxiliary())
      return withNote(
          emitError() << "engine " << stringifyEngine(engine) << " must be driven by one role, but "
                      << x.getName() << " and " << y.getName() << " drive it",
          engine == Engine::Threads ? "write 'auxiliary' at one of them, whose ops name it"
                                    : "take the engine out of one of them");
  return success();
}

/// (C143) The registers of each warpgroup, where a role of it asks for some.
static LogicalResult verifyRegisters(EmitError emitError, ArrayRef<RoleAttr> roles) {
  auto registersOf = [&](int32_t warp) {
    for (RoleAttr role : roles)
      if (role.getFirstWarp() <= warp && warp < role.getEndWarp())
        return role.getRegisters();
    return 0;
  };
  for (RoleAttr role : roles) {
    if (!role.getRegisters())
      continue;
    int32_t first = role.getFirstWarp() / kWarpsPerGroup * kWarpsPerGroup;
    int32_t end = llvm::alignTo(role.getEndWarp(), kWarpsPerGroup);
    for (int32_t warp = first; warp < end; ++warp)
      if (registersOf(warp) != role.getRegisters())
        return withNote(emitError()
                            << "warps " << first << " to " << end << " must all ask for the "
                            << role.getRegisters() << " registers of role " << role.getName()
                            << ", but warp " << warp << " asks for " << registersOf(warp),
                        "setmaxnreg changes whole warpgroups: write the same registers at every "
                        "role of these warps");
  }
  return success();
}

LogicalResult RolePlanAttr::verify(EmitError emitError, ArrayRef<RoleAttr> roles) {
  if (roles.empty())
    return withNote(
        emitError() << "role plan must have a role",
        "write at least one, such as #pipe.role_plan<all warps 0 to 4 drives [threads]>");
  for (auto [i, x] : llvm::enumerate(roles))
    for (RoleAttr y : roles.drop_front(i + 1))
      if (failed(verifyDisjoint(emitError, x, y)))
        return failure();
  return verifyRegisters(emitError, roles);
}
