//===- AbiTest.cpp - The functions that compiled programs call ------------===//

#include "fp4/Runtime/Session.h"

#include <gmock/gmock.h>

namespace fp4::rt {
namespace {

TEST(Abi, TheTableHasEveryFunction) {
  const fp4rt_api *api = fp4rt_get_api();
  EXPECT_EQ(api->size, sizeof(fp4rt_api));
  EXPECT_EQ(api->alloc, &fp4rt_alloc);
  EXPECT_EQ(api->alloc_result, &fp4rt_alloc_result);
  EXPECT_EQ(api->fail, &fp4rt_fail);
  EXPECT_EQ(api->launch, &fp4rt_launch);
  EXPECT_EQ(api->counters, &fp4rt_counters);
  EXPECT_EQ(api->group_report, &fp4rt_group_report);
  EXPECT_EQ(api->result_pitch, &fp4rt_result_pitch);
}

TEST(Abi, EveryFunctionHasASymbol) {
  for (const AbiSymbol &symbol : abiSymbols()) {
    EXPECT_NE(symbol.address, nullptr);
    EXPECT_THAT(symbol.name, testing::StartsWith("fp4rt_"));
  }
  EXPECT_EQ(abiSymbols().size(), sizeof(fp4rt_api) / sizeof(void *) - 1);
}

} // namespace
} // namespace fp4::rt
