// Targets that multiply activations without scales by weights of 4 bits, and their ways.
#include "fp4/ISA/WeightGemms.h"
#include <gtest/gtest.h>

using namespace fp4;
using namespace fp4::hw;

TEST(WeightGemms, routesOfTargets) {
  const struct {
    const char *target;
    Activation activation;
    Weights weights;
    std::optional<WeightRoute> route;
  } rows[] = {{"sm_90a", Activation::Half, Weights::Scaled, WeightRoute::Registers},
              {"sm_90a", Activation::Half, Weights::Prepacked, WeightRoute::Registers},
              {"sm_90a", Activation::E4M3, Weights::Scaled, std::nullopt},
              {"sm_90a", Activation::E4M3, Weights::Prepacked, WeightRoute::Registers},
              {"sm_100a", Activation::Half, Weights::Scaled, WeightRoute::Lanes},
              {"sm_100a", Activation::Half, Weights::Prepacked, WeightRoute::Lanes},
              {"sm_103a", Activation::E4M3, Weights::Scaled, WeightRoute::UnitScales},
              {"sm_103a", Activation::E4M3, Weights::Prepacked, std::nullopt},
              {"sm_120a", Activation::Half, Weights::Prepacked, WeightRoute::Registers},
              {"sm_120a", Activation::E4M3, Weights::Scaled, WeightRoute::UnitScales}};
  for (const auto &row : rows) {
    SCOPED_TRACE(row.target);
    const auto route = requireWeightGemm(*lookupTarget(row.target), row.activation, row.weights);
    EXPECT_EQ(route.has_value(), row.route.has_value());
    if (route && row.route) {
      EXPECT_EQ(*route, *row.route);
    }
  }
}

TEST(WeightGemms, theErrorNamesWhatTheTargetHas) {
  const auto packed =
      requireWeightGemm(*lookupTarget("sm_100a"), Activation::E4M3, Weights::Prepacked);
  ASSERT_FALSE(packed);
  EXPECT_EQ(packed.error().message, "target 'sm_100a' has no GEMMs of f8E4M3FN without scales "
                                    "and prepacked weights");
  EXPECT_EQ(packed.error().note, "targets that have them: sm_90a; or pass the weights with their "
                                 "tiled scales, as fp4.unprepack and fp4.swizzle_scales give them, "
                                 "and leave fast_accumulation out");
  const auto scaled = requireWeightGemm(*lookupTarget("sm_90a"), Activation::E4M3, Weights::Scaled);
  ASSERT_FALSE(scaled);
  EXPECT_NE(scaled.error().note.find("; or prepack the weights with fp4.prepack"),
            std::string::npos);
}
