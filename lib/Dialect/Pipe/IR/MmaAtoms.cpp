//===- MmaAtoms.cpp - The atom of an MMA ----------------------------------===//
//
// The choice of a row of fp4/ISA/MmaAtoms.h by the types of pipe.mma, and the errors for types and
// fields that no row has.
//
//===----------------------------------------------------------------------===//

#include "VerifyMma.h"

#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/ISA/WeightLayout.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;
using hw::MmaAtom, hw::MmaElements, hw::MmaFields, hw::MmaForm, hw::MmaPlace;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static MmaPlace placeOf(Type type) {
  if (isa_and_present<SharedType>(type))
    return MmaPlace::Shared;
  if (isa_and_present<TmemType>(type))
    return MmaPlace::Tmem;
  if (type && distributionOf(type))
    return distributionOf(type).getKind() == FragmentKind::Wgmma ? MmaPlace::Warpgroup
                                                                 : MmaPlace::None;
  auto fragment = dyn_cast_or_null<FragmentType>(type);
  if (fragment && fragment.getKind() == FragmentKind::Wgmma)
    return MmaPlace::Warpgroup;
  return fragment && fragment.getKind() == FragmentKind::MmaSync ? MmaPlace::Warp : MmaPlace::None;
}

/// Returns the tiles of prepacked weights in the rows of `tile`, which are bytes.
static MmaElements tilesOf(SharedType tile) {
  if (tile.getLayout() != Layout::Linear)
    return MmaElements::None;
  if (tile.getInnerBytes() == hw::byteTileBytes)
    return MmaElements::ByteTiles;
  bool isForHalf = tile.getInnerBytes() == hw::weightTileBytes(16) ||
                   tile.getInnerBytes() == hw::weightTileBytes(32);
  return isForHalf ? MmaElements::HalfTiles : MmaElements::None;
}

/// Returns true when a row of `tile`, 16-bit floats, is the K of one instruction.
static bool isOfSteps(Type type) {
  auto tile = dyn_cast<SharedType>(type);
  return tile && tile.getColumns() == kDenseMmaK;
}

static MmaElements elementsOf(Type type) {
  if (auto tile = dyn_cast<SharedType>(type); tile && tile.getElementType().isInteger(8))
    return tilesOf(tile);
  Type element = isa<SharedType>(type)     ? cast<SharedType>(type).getElementType()
                 : isa<TmemType>(type)     ? cast<TmemType>(type).getElementType()
                 : isa<FragmentType>(type) ? cast<FragmentType>(type).getElementType()
                                           : getElementTypeOrSelf(type);
  if (isa<Float4E2M1FNType>(element))
    return MmaElements::Codes4;
  if (isSixBitElementType(element))
    return MmaElements::Codes6;
  if (isa<Float8E4M3FNType>(element))
    return isa<RankedTensorType>(type) ? MmaElements::Rounded8 : MmaElements::E4M3;
  if (isa<Float8E5M2Type>(element))
    return MmaElements::E5M2;
  if (!element.isF16() && !element.isBF16())
    return MmaElements::None;
  return isOfSteps(type) ? MmaElements::HalfSteps : MmaElements::Half;
}

/// Returns true for a tile of sums.
static bool isAccumulator(Type type) {
  if (auto tile = dyn_cast<TmemType>(type))
    return tile.isAccumulator();
  return cast<FragmentType>(type).getElementType().isF32();
}

static bool fits(const hw::MmaOperand &operand, Type type) {
  return operand.place == placeOf(type) && intersect(operand.elements, elementsOf(type));
}

static Type typeOf(Value value) { return value ? value.getType() : Type(); }

//===----------------------------------------------------------------------===//
// Words of messages
//===----------------------------------------------------------------------===//

static StringRef spell(MmaPlace place) {
  switch (place) {
  case MmaPlace::None:
    return "left out";
  case MmaPlace::Shared:
    return "in shared memory";
  case MmaPlace::Tmem:
    return "in tensor memory";
  case MmaPlace::Warpgroup:
    return "in a fragment of wgmma";
  case MmaPlace::Warp:
    return "in a fragment of mma_sync";
  }
  llvm_unreachable("every place has its words");
}

static std::string spell(MmaElements elements) {
  static const std::pair<MmaElements, std::string> words[] = {
      {MmaElements::Codes4, "f4E2M1FN"},
      {MmaElements::Codes6, "f6E2M3FN, f6E3M2FN"},
      {MmaElements::E4M3, "f8E4M3FN"},
      {MmaElements::Rounded8, "rounded f8E4M3FN"},
      {MmaElements::E5M2, "f8E5M2"},
      {MmaElements::Half, "f16, bf16"},
      {MmaElements::HalfSteps, "f16, bf16 of 16 columns"},
      {MmaElements::HalfTiles, "i8 in linear rows of " + std::to_string(hw::weightTileBytes(16)) +
                                   " or " + std::to_string(hw::weightTileBytes(32)) + " bytes"},
      {MmaElements::ByteTiles,
       "i8 in linear rows of " + std::to_string(hw::byteTileBytes) + " bytes"}};
  SmallVector<StringRef> found;
  for (const auto &[element, word] : words)
    if (intersect(elements, element))
      found.push_back(word);
  return llvm::join(found, ", ");
}

using Atoms = ArrayRef<const MmaAtom *>;
static constexpr MmaPlace kPlaces[] = {MmaPlace::None, MmaPlace::Shared, MmaPlace::Tmem,
                                       MmaPlace::Warpgroup, MmaPlace::Warp};

/// Spells what `atoms` have of one operand: the elements in each memory.
static std::string spell(Atoms atoms, hw::MmaOperand MmaAtom::*operand) {
  SmallVector<std::string> choices;
  for (MmaPlace place : kPlaces) {
    MmaElements found = MmaElements::None;
    for (const MmaAtom *atom : atoms)
      if ((atom->*operand).place == place)
        found = found | (atom->*operand).elements;
    if (found != MmaElements::None)
      choices.push_back(spell(found) + ' ' + spell(place).str());
  }
  return llvm::join(choices, " or ");
}

/// Spells the memories that `place` finds in `atoms`, behind `what` they have there.
static std::string spell(Atoms atoms, StringRef what,
                         llvm::function_ref<MmaPlace(const MmaAtom &)> place) {
  SmallVector<std::string> choices;
  for (MmaPlace choice : kPlaces)
    if (llvm::any_of(atoms, [&](const MmaAtom *atom) { return place(*atom) == choice; }))
      choices.push_back(choice == MmaPlace::None ? spell(choice).str()
                                                 : (what + " " + spell(choice)).str());
  return llvm::join(choices, " or ");
}

static std::string spellScales(Atoms atoms, hw::MmaOperand MmaAtom::*operand) {
  return spell(atoms, "scales", [&](const MmaAtom &atom) { return (atom.*operand).scales; });
}

static std::string spellAccumulators(Atoms atoms) {
  return spell(atoms, "f32", [](const MmaAtom &atom) { return atom.accumulator; });
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

namespace {
/// An operand whose type chooses atoms.
struct Chooser {
  StringLiteral name;
  Type (*type)(MmaOp);
  bool (*fits)(const MmaAtom &, Type);
  std::string (*spell)(Atoms);
};

/// A field that not every atom reads.
struct Field {
  StringLiteral name;
  MmaFields field;
  bool (*isThere)(MmaOp);
};
} // namespace

static const Chooser kChoosers[] = {
    {"accumulator", [](MmaOp op) { return typeOf(op.getAccumulator()); },
     [](const MmaAtom &atom, Type type) {
       return atom.accumulator == placeOf(type) && isAccumulator(type);
     },
     spellAccumulators},
    {"a", [](MmaOp op) { return typeOf(op.getA()); },
     [](const MmaAtom &atom, Type type) { return fits(atom.a, type); },
     [](Atoms atoms) { return spell(atoms, &MmaAtom::a); }},
    {"a_scales", [](MmaOp op) { return typeOf(op.getAScales()); },
     [](const MmaAtom &atom, Type type) { return atom.a.scales == placeOf(type); },
     [](Atoms atoms) { return spellScales(atoms, &MmaAtom::a); }},
    {"b", [](MmaOp op) { return typeOf(op.getB()); },
     [](const MmaAtom &atom, Type type) { return fits(atom.b, type); },
     [](Atoms atoms) { return spell(atoms, &MmaAtom::b); }},
    {"b_scales", [](MmaOp op) { return typeOf(op.getBScales()); },
     [](const MmaAtom &atom, Type type) { return atom.b.scales == placeOf(type); },
     [](Atoms atoms) { return spellScales(atoms, &MmaAtom::b); }}};

static const Field kFields[] = {
    {"accumulate", MmaFields::Accumulate, [](MmaOp op) { return bool(op.getAccumulate()); }},
    {"a_scale_row", MmaFields::AScaleRow, [](MmaOp op) { return bool(op.getAScaleRow()); }},
    {"b_scale_row", MmaFields::BScaleRow, [](MmaOp op) { return bool(op.getBScaleRow()); }},
    {"existing", MmaFields::Existing, [](MmaOp op) { return bool(op.getExisting()); }},
    {"next", MmaFields::Next, [](MmaOp op) { return bool(op.getNext()); }},
    {"factors", MmaFields::Factors, [](MmaOp op) { return bool(op.getFactors()); }},
    {"a_row", MmaFields::ARow, [](MmaOp op) { return op.getARow() != 0; }},
    {"depth", MmaFields::Depth, [](MmaOp op) { return op.getKDepth() != MmaDepth::Single; }},
    {"part", MmaFields::Depth, [](MmaOp op) { return op.getPart().has_value(); }},
    {"in_order", MmaFields::InOrder, [](MmaOp op) { return op.getInOrder(); }},
    {"without_powers", MmaFields::WithoutPowers, [](MmaOp op) { return op.getWithoutPowers(); }},
    {"transposed", MmaFields::Transposed, [](MmaOp op) { return op.getTransposed(); }},
    {"b_column", MmaFields::BColumn, [](MmaOp op) { return op.getBColumn() != 0; }},
    {"chain until", MmaFields::GoesOn, [](MmaOp op) { return op.goesOn(); }},
    {"chain", MmaFields::Chain,
     [](MmaOp op) { return op.getChain() != MmaChain::Alone && !op.goesOn(); }},
    {"fencing", MmaFields::Fencing, [](MmaOp op) { return op.getFencing(); }}};

const MmaAtom *MmaOp::getAtom() {
  const auto *found = llvm::find_if(hw::mmaAtoms, [&](const MmaAtom &atom) {
    return llvm::all_of(
        kChoosers, [&](const Chooser &chooser) { return chooser.fits(atom, chooser.type(*this)); });
  });
  return found == std::end(hw::mmaAtoms) ? nullptr : found;
}

/// Reports an operand that none of `atoms` has, and lists what they have.
static LogicalResult refuse(MmaOp op, const Chooser &chooser, Atoms atoms) {
  SmallVector<StringRef> names;
  for (const MmaAtom *atom : atoms)
    names.push_back(atom->name);
  InFlightDiagnostic diag = op.emitOpError()
                            << chooser.name << " must be " << chooser.spell(atoms) << ", but got ";
  if (Type type = chooser.type(op))
    diag << type;
  else
    diag << "none";
  return withNote(std::move(diag),
                  "MMAs with the operands before it are " + llvm::join(names, ", "));
}

/// Reports `field`, which the atom of `op` does not read.
static LogicalResult refuse(MmaOp op, const Field &field) {
  SmallVector<StringRef> names;
  for (const MmaAtom &atom : hw::mmaAtoms)
    if (intersect(atom.fields, field.field))
      names.push_back(atom.name);
  return withNote(op.emitOpError() << "'" << field.name << "' must be left out of an MMA of "
                                   << StringRef(op.getAtom()->name) << ", but is there",
                  "MMAs that read it are " + llvm::join(names, ", "));
}

/// (C650) An atom has the types, and reads the fields that are there.
LogicalResult fp4::pipe::verifyAtom(MmaOp op) {
  SmallVector<const MmaAtom *> atoms;
  for (const MmaAtom &atom : hw::mmaAtoms)
    atoms.push_back(&atom);
  for (const Chooser &chooser : kChoosers) {
    SmallVector<const MmaAtom *> fitting = llvm::filter_to_vector(
        atoms, [&](const MmaAtom *atom) { return chooser.fits(*atom, chooser.type(op)); });
    if (fitting.empty())
      return refuse(op, chooser, atoms);
    atoms = std::move(fitting);
  }
  for (const Field &field : kFields)
    if (field.isThere(op) && !intersect(op.getAtom()->fields, field.field))
      return refuse(op, field);
  return success();
}

static LogicalResult verifyForm(MmaOp op) {
  switch (op.getForm()) {
  case MmaForm::Tcgen05Scaled:
    return verifyTcgen05Scaled(op);
  case MmaForm::Tcgen05Dense:
    return verifyTcgen05Dense(op);
  case MmaForm::Tcgen05TmemA:
    return verifyTcgen05TmemA(op);
  case MmaForm::Tcgen05Slices:
    return verifyTcgen05Slices(op);
  case MmaForm::WgmmaShared:
    return verifyWgmmaShared(op);
  case MmaForm::WgmmaFloat:
    return verifyWgmmaFloat(op);
  case MmaForm::WgmmaDequantized:
    return verifyWgmmaDequantized(op);
  case MmaForm::WgmmaPrepacked:
    return verifyWgmmaPrepacked(op);
  case MmaForm::WgmmaResident:
    return verifyWgmmaResident(op);
  case MmaForm::MmaSync:
    return verifyMmaSync(op);
  }
  llvm_unreachable("every form has its checks");
}

LogicalResult MmaOp::verify() {
  if (failed(verifyAtom(*this)) || failed(verifyForm(*this))) // (C650)
    return failure();
  return verifyChain(*this); // (C625)
}
