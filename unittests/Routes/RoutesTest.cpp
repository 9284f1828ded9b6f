// The table of routes: what each pair has on each target, and the errors that say so.
#include "fp4/Routes/Routes.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace fp4;
using namespace fp4::route;
using numerics::BlockFormat;

namespace {

constexpr Signature fp4Pair = {.lhs = BlockFormat::NVFP4, .rhs = BlockFormat::NVFP4};
constexpr Signature halves = {
    .activations = Activations::Half, .lhs = BlockFormat::MXFP4, .rhs = BlockFormat::MXFP4};
constexpr Signature bytes = {.activations = Activations::E4M3,
                             .weights = Weights::Prepacked,
                             .lhs = BlockFormat::MXFP4,
                             .rhs = BlockFormat::MXFP4};

const hw::TargetModel &target(std::string_view name) { return *hw::lookupTarget(name); }

std::vector<std::string> textsOf(const Signature &signature, std::string_view name) {
  std::vector<std::string> texts;
  for (const Record *record : routesOf(signature, target(name)))
    texts.push_back(record->route.str());
  return texts;
}

Signature with(Signature signature, auto member, auto value) {
  signature.*member = value;
  return signature;
}

} // namespace

TEST(Routes, pairsOfSignatures) {
  const auto formats = [](BlockFormat lhs, BlockFormat rhs) {
    return pairOf({.lhs = lhs, .rhs = rhs});
  };
  EXPECT_EQ(pairOf(fp4Pair), Pair::Fp4);
  EXPECT_EQ(pairOf(with(fp4Pair, &Signature::arithmetic, Arithmetic::K96)), Pair::Fp4K96);
  EXPECT_EQ(pairOf(with(fp4Pair, &Signature::arithmetic, Arithmetic::DoubleK)), Pair::Fp4DoubleK);
  EXPECT_EQ(pairOf(with(fp4Pair, &Signature::arithmetic, Arithmetic::Fma)), Pair::Fma);
  EXPECT_EQ(pairOf(with(fp4Pair, &Signature::weights, Weights::Prepacked)), Pair::Fp4Prepacked);
  EXPECT_EQ(formats(BlockFormat::MXFP8E4M3, BlockFormat::MXFP4), Pair::Mx8);
  EXPECT_EQ(formats(BlockFormat::MXFP4, BlockFormat::MXFP8E5M2), Pair::Mx8);
  EXPECT_EQ(formats(BlockFormat::MXFP8E4M3, BlockFormat::MXFP6E2M3), Pair::Mx6);
  EXPECT_EQ(formats(BlockFormat::FP8Block128, BlockFormat::FP8Block128), Pair::F32Scaled);
  EXPECT_EQ(pairOf(halves), Pair::HalfScaled);
  EXPECT_EQ(pairOf(with(with(halves, &Signature::lhs, BlockFormat::MXFP6E3M2), &Signature::rhs,
                        BlockFormat::MXFP6E3M2)),
            Pair::HalfMx6);
  EXPECT_EQ(pairOf(with(halves, &Signature::weights, Weights::Prepacked)), Pair::HalfPrepacked);
  EXPECT_EQ(pairOf(bytes), Pair::BytePrepacked);
  EXPECT_EQ(pairOf(with(bytes, &Signature::arithmetic, Arithmetic::Fast)), Pair::BytePrepackedFast);
  EXPECT_EQ(pairOf(with(bytes, &Signature::weights, Weights::Scaled)), Pair::ByteScaled);
}

TEST(Routes, operandsThatAreNoPair) {
  EXPECT_TRUE(requirePair(fp4Pair.with(Limit::Groups)));
  const auto mixed = requirePair({.lhs = BlockFormat::NVFP4, .rhs = BlockFormat::MXFP4});
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().message, "no route multiplies a lhs of nvfp4 and a rhs of mxfp4");
  EXPECT_EQ(
      mixed.error().note.find("nearest operands that routes multiply, of one format or of two "
                              "of OCP MX: elements of 4 bits with scales (nvfp4, mxfp4); "),
      0u);
  const auto fast = requirePair(with(halves, &Signature::arithmetic, Arithmetic::Fast));
  ASSERT_FALSE(fast);
  EXPECT_EQ(fast.error().message, "no route multiplies a lhs of 16-bit floats and a rhs of mxfp4 "
                                  "with arithmetic fast_accumulation");
  const Signature packed = with(fp4Pair, &Signature::weights, Weights::Prepacked);
  for (const Limit limit : {Limit::Groups, Limit::Dual, Limit::Derived, Limit::Shares})
    EXPECT_TRUE(requirePair(packed.with(limit)));
  const Signature promoted = {.lhs = BlockFormat::FP8Block128, .rhs = BlockFormat::FP8Block128};
  const auto shared = requirePair(promoted.with(Limit::Shares));
  ASSERT_FALSE(shared);
  EXPECT_EQ(shared.error().message, "no route has 'stream_k' for FP8 with f32 scales");
  for (const Limit limit : {Limit::Dual, Limit::Derived})
    for (const char *name : {"sm_90a", "sm_100a", "sm_120a"})
      EXPECT_EQ(textsOf(promoted.with(limit), name).size(), 1u) << name;
  for (const Limit limit : {Limit::Dual, Limit::Derived})
    EXPECT_EQ(textsOf(bytes.with(limit), "sm_100a").size(), 1u);
  EXPECT_TRUE(textsOf(promoted.with(Limit::Derived).with(Limit::WideBlocks), "sm_120a").empty());
  const Signature bytesBeside = with(bytes, &Signature::weights, Weights::Scaled);
  for (const Limit limit : {Limit::Dual, Limit::Derived}) {
    EXPECT_TRUE(requirePair(halves.with(limit)));
    EXPECT_EQ(textsOf(bytesBeside.with(limit), "sm_100a").size(), 1u);
    EXPECT_EQ(textsOf(bytesBeside, "sm_100a").size(), 2u);
  }
  EXPECT_TRUE(requirePair(halves.with(Limit::Dual).with(Limit::Dual, false)));
  EXPECT_EQ(pairOf(halves.with(Limit::Dual)), Pair::HalfScaled);
}

TEST(Routes, fieldsOfPlansThatRoutesRead) {
  const Record *normal = findRoute(fp4Pair, target("sm_100a"));
  const Record *pre = findRoute(fp4Pair, target("sm_90a"), {.b = Operand::Pre});
  for (const char *field : {"tile", "schedule", "stages"}) // of all routes
    EXPECT_TRUE(normal->reads(field) && pre->reads(field)) << field;
  EXPECT_TRUE(normal->reads("pair") && normal->reads("mma_warps"));
  EXPECT_FALSE(normal->reads("k_slices"));
  EXPECT_TRUE(pre->reads("cluster"));
  EXPECT_FALSE(pre->reads("pair"));
}

TEST(Routes, routesOfTargets) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(
      textsOf(fp4Pair, "sm_100a"),
      (Texts{"<core = tcgen05, a = as_is, b = as_is, accumulate = core, orientation = normal>",
             "<core = tcgen05, a = as_is, b = as_is, accumulate = core, orientation = swapped>"}));
  EXPECT_EQ(
      textsOf(fp4Pair, "sm_90a"),
      (Texts{"<core = wgmma, a = registers, b = shared, accumulate = core, orientation = normal>",
             "<core = wgmma, a = registers, b = shared, accumulate = core, orientation = swapped>",
             "<core = wgmma, a = registers, b = pre, accumulate = core, orientation = swapped>"}));
  EXPECT_EQ(
      textsOf(halves, "sm_103a"),
      (Texts{"<core = tcgen05, a = tmem, b = as_is, accumulate = core, orientation = swapped>"}));
  EXPECT_EQ(textsOf(bytes, "sm_90a"),
            (Texts{"<core = wgmma, a = registers, b = as_is, accumulate = promote(128), "
                   "orientation = swapped>",
                   "<core = wgmma, a = pre, b = as_is, accumulate = promote(128), "
                   "orientation = swapped>"}));
  EXPECT_EQ(textsOf(bytes, "sm_120a"),
            (Texts{"<core = mma_sync, a = registers, b = as_is, accumulate = promote(128), "
                   "orientation = swapped>"}));
  EXPECT_EQ(textsOf(with(bytes, &Signature::arithmetic, Arithmetic::Fast), "sm_100a"),
            (Texts{"<core = tcgen05, a = tmem, b = as_is, accumulate = fast, "
                   "orientation = swapped>"}));
  // Groups have no swapped operands.
  EXPECT_EQ(textsOf(fp4Pair.with(Limit::Groups), "sm_90a").size(), 1u);
  EXPECT_EQ(textsOf(fp4Pair.with(Limit::Dual), "sm_90a").size(), 3u);
  EXPECT_EQ(textsOf(fp4Pair.with(Limit::Derived), "sm_100a").size(), 1u);
}

TEST(Routes, oneCoreAndOneModelForASignature) {
  // Plans change no bit: all routes among which a plan chooses have one model of the arithmetic.
  for (const hw::TargetModel &any : hw::targets())
    for (size_t pair = 0; pair <= static_cast<size_t>(Pair::Fma); ++pair) {
      std::set<numerics::TensorCore> units;
      std::set<Core> cores;
      std::set<Planner> planners;
      std::set<std::string> texts;
      size_t count = 0;
      for (const Record &record : table()) {
        const auto core = coreOf(fp4Pair, any);
        if (!record.isOf(static_cast<Pair>(pair)) || !core ||
            (record.route.core != core && record.route.core != Core::Fma))
          continue;
        EXPECT_TRUE(record.route.isComplete());
        units.insert(record.unit);
        cores.insert(*record.route.core);
        planners.insert(record.planner);
        texts.insert(record.route.str());
        ++count;
      }
      EXPECT_LE(units.size(), 1u) << any.name << " " << wordsOf(static_cast<Pair>(pair));
      EXPECT_LE(cores.size(), 1u);
      EXPECT_LE(planners.size(), 1u);
      EXPECT_EQ(texts.size(), count) << "a pair has a route once";
    }
}

TEST(Routes, askedForAxes) {
  const Record *pre = findRoute(fp4Pair, target("sm_90a"), {.b = Operand::Pre});
  ASSERT_TRUE(pre);
  EXPECT_EQ(pre->tile, Tile::Transpose);
  EXPECT_EQ(pre->planner, Planner::Converted);
  EXPECT_FALSE(findRoute(fp4Pair, target("sm_90a"), {.core = Core::Tcgen05}));
  EXPECT_FALSE(findRoute(fp4Pair, target("sm_90a"),
                         {.b = Operand::Pre, .orientation = Orientation::Normal}));
  EXPECT_TRUE((Route{.core = Core::Wgmma}).agreesWith({.b = Operand::Pre}));
  EXPECT_FALSE((Route{.core = Core::Wgmma}).agreesWith({.core = Core::Fma}));
}

TEST(Routes, errorsSayWhatExists) {
  const Signature scaled = with(bytes, &Signature::weights, Weights::Scaled);
  EXPECT_TRUE(requireRoute(scaled.with(Limit::Groups), target("sm_90a")));
  const auto shares = requireRoute(scaled.with(Limit::Shares), target("sm_120a"));
  ASSERT_FALSE(shares);
  EXPECT_EQ(shares.error().message, "target 'sm_120a' has no GEMMs of f8E4M3FN without scales and "
                                    "weights with scales, with 'stream_k'");
  EXPECT_EQ(shares.error().note,
            "targets that have them: sm_100a, sm_103a, sm_107a, sm_110a; or leave 'stream_k' out; "
            "stream_k: L2 binds (predicted), and shared tiles load more");
  const auto prepacked =
      requireRoute(with(fp4Pair, &Signature::weights, Weights::Prepacked), target("sm_120a"));
  ASSERT_FALSE(prepacked);
  EXPECT_EQ(prepacked.error().note,
            "targets that have them: sm_90a; or pass the weights with their scales; there the core "
            "takes weights and scales as they are, so none are prepacked");
  const auto wide = requireRoute(fp4Pair.with(Limit::WideBlocks), target("sm_120a"));
  ASSERT_FALSE(wide);
  EXPECT_EQ(wide.error().note,
            "targets that have them: sm_100a, sm_103a, sm_107a, sm_90a, sm_110a; or leave "
            "fp8_block128 results of two GEMMs or of f32 out; wide blocks: tiles of so many sums "
            "have half a block");
  const auto core = requireRoute(fp4Pair, target("sm_120a"), {.core = Core::Wgmma});
  ASSERT_FALSE(core);
  EXPECT_EQ(core.error().message, "route <core = wgmma> is none of target 'sm_120a' for GEMMs of "
                                  "elements of 4 bits with scales");
  EXPECT_EQ(core.error().note,
            "routes there: <core = mma_sync, a = as_is, b = as_is, accumulate = core, orientation "
            "= normal>; targets with the one that is asked for: sm_90a");
  const auto none =
      requireRoute(fp4Pair.with(Limit::Groups), target("sm_90a"), {.b = Operand::Pre});
  ASSERT_FALSE(none);
  const auto shared = requireRoute(fp4Pair.with(Limit::Shares), target("sm_90a"));
  ASSERT_FALSE(shared);
  EXPECT_EQ(shared.error().message,
            "target 'sm_90a' has no GEMMs of elements of 4 bits with scales, with 'stream_k'");
  EXPECT_EQ(shared.error().note,
            "targets that have them: sm_100a, sm_103a, sm_107a, sm_110a; or leave 'stream_k' out; "
            "stream_k: beside conversions shared tiles are 1 to 12 % slower");
  EXPECT_NE(none.error().message.find("with scales, with groups"), std::string::npos);
  EXPECT_NE(none.error().note.find("; no target has the one that is asked for"), std::string::npos);
  EXPECT_TRUE(requireRoute(fp4Pair, target("sm_90a"), {.b = Operand::Pre}));
}

TEST(Routes, modelsOfArithmetic) {
  EXPECT_EQ(modelOf(fp4Pair, target("sm_100a")).unit, numerics::TensorCore::BlockScaled);
  EXPECT_EQ(modelOf(fp4Pair, target("sm_90a")).unit, numerics::TensorCore::Converted);
  EXPECT_EQ(modelOf(halves, target("sm_120a")).unit, numerics::TensorCore::Converted);
  EXPECT_EQ(modelOf(with(fp4Pair, &Signature::arithmetic, Arithmetic::Fma), target("sm_90a")).unit,
            numerics::TensorCore::None);
  EXPECT_EQ(modelOf(bytes, target("sm_90a")).unit, numerics::TensorCore::Converted);
  EXPECT_EQ(modelOf(bytes, target("sm_100a")).unit, numerics::TensorCore::BlockScaled);
  // No target but sm_90a has the pair, and its model is the one of wgmma.
  EXPECT_EQ(
      modelOf(with(fp4Pair, &Signature::weights, Weights::Prepacked), target("sm_100a")).route.core,
      Core::Wgmma);
}

TEST(Routes, coresOfTargets) {
  EXPECT_TRUE(requireCore(target("sm_90a"), Core::Wgmma));
  const auto lacks = requireCore(target("sm_120a"), Core::Wgmma);
  ASSERT_FALSE(lacks);
  EXPECT_EQ(lacks.error().message, "target 'sm_120a' has no wgmma");
  EXPECT_EQ(lacks.error().note, "targets with wgmma: sm_90a");
  EXPECT_TRUE(hasCore(target("sm_120a"), Core::MmaSync));
  EXPECT_TRUE(hasCore(target("sm_120a"), Core::Fma));
}

TEST(Routes, theListHasEachRouteOfEachPair) {
  const std::string text = listRoutes(target("sm_90a"));
  EXPECT_NE(text.find("wgmma     registers    pre          core          swapped      groups"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("tcgen05"), std::string::npos);
  EXPECT_NE(listRoutes(target("sm_103a")).find("K = 96"), std::string::npos);
  EXPECT_NE(listRoutes(target("sm_100a"))
                .find("\nno route for elements of 4 bits in instructions of K = 96: only sm_103a "),
            std::string::npos);
  EXPECT_EQ(listRoutes(target("sm_107a")).find("no route for elements of 4 bits in"),
            std::string::npos);
  EXPECT_NE(
      listRoutes(target("sm_103a"))
          .find("\nno route for elements of 4 bits in instructions of K = 128: only sm_107a "),
      std::string::npos);
}

/// Every pair has routes on a target, or the reason why there are none.
TEST(Routes, everyLackHasAReason) {
  const std::set doubled = {Pair::Fp4DoubleK, Pair::Mx8DoubleK, Pair::F32ScaledDoubleK};
  for (const hw::TargetModel &model : hw::targets())
    for (unsigned pair = 0; pair <= unsigned(Pair::Fma); ++pair) {
      const bool has = std::ranges::any_of(table(), [&](const Record &record) {
        return record.isOf(Pair(pair)) && hasCore(model, *record.route.core) &&
               (Pair(pair) != Pair::Fp4K96 || model.features.hasFp4K96) &&
               (!doubled.contains(Pair(pair)) || model.features.hasDoubleK);
      });
      EXPECT_EQ(reasonOfLack(Pair(pair), model).empty(), has)
          << model.name << ": " << wordsOf(Pair(pair));
    }
  EXPECT_EQ(reasonOfLack(Pair::Fp4Prepacked, target("sm_100a")),
            "the core takes weights and scales as they are, so none are prepacked");
}

/// Signatures of all operands of one format that some pair has.
static std::vector<Signature> everySignature() {
  std::vector<Signature> found;
  for (const auto activations : {Activations::Scaled, Activations::Half, Activations::E4M3})
    for (const auto weights : {Weights::Scaled, Weights::Prepacked})
      for (unsigned arithmetic = 0; arithmetic <= unsigned(Arithmetic::DoubleK); ++arithmetic)
        for (const auto format : {BlockFormat::NVFP4, BlockFormat::MXFP4, BlockFormat::MXFP6E2M3,
                                  BlockFormat::MXFP8E4M3, BlockFormat::FP8Block128})
          if (const Signature signature = {.activations = activations,
                                           .weights = weights,
                                           .lhs = format,
                                           .rhs = format,
                                           .arithmetic = Arithmetic(arithmetic)};
              requirePair(signature))
            found.push_back(signature);
  return found;
}

/// GEMMs that no route of a pair on a core has have a reason, and others have none.
TEST(Routes, everyLimitHasAReason) {
  std::set<Pair> seen;
  for (const Signature &signature : everySignature())
    for (const hw::TargetModel &model : hw::targets()) {
      const Pair pair = pairOf(signature);
      const std::optional<Core> core = coreOf(signature, model);
      if (!core)
        continue;
      seen.insert(pair);
      for (unsigned limit = 0; limit <= unsigned(Limit::WideBlocks); ++limit)
        EXPECT_EQ(reasonOfLack(pair, *core, Limit(limit)).empty(),
                  findRoute(signature.with(Limit(limit)), model) != nullptr)
            << model.name << ": " << wordsOf(pair) << ", limit " << limit;
    }
  EXPECT_EQ(seen.size(), unsigned(Pair::Fma) + 1);
  EXPECT_EQ(reasonOfLack(Pair::Fma, Core::Fma, Limit::Shares),
            "a warp has four columns, 32 apart, and all of K");
}
