// The approximate power of two of the GPU, a table with quadratic interpolation in fixed point as
// in Reciprocal.cpp. |x| is cut to 23 bits behind the point. A negative x whose fraction is not 0
// has the complements of the integer and the fraction of |x|. The upper 6 bits of the fraction
// choose a row (c0, c1, c2) of 26, 18 and 11 bits, and the lower 17 bits are z. In units of 2^-23
// the power of the fraction is
//
//   floor((c0 * 2^15 + c1 * z + c2 * square(z) + 24458) / 2^17)
//
// and square(z) is z^2 / 2^18 without the partial products of weight 2^18 and less, as for square
// roots. The coefficients were fitted to the 2^23 results of an H200 for 1 to 2, where the constants
// 24456 to 24459 give all of them. All other results follow.
#include "fp4/Numerics/PowerOfTwo.h"
#include "TruncatedSquare.h"
#include "fp4/Numerics/Float16.h"
#include <array>
#include <cmath>

namespace fp4::numerics {
namespace {

struct PowerRow {
  uint32_t c0, c1;
  uint16_t c2;
};

// clang-format off
constexpr std::array<PowerRow, 64> powerRows = {{
    {33554435, 90852, 988}, {33919818, 91840, 1002}, {34289182, 92840, 1012},
    {34662565, 93852, 1022}, {35040018, 94872, 1036}, {35421577, 95908, 1042},
    {35807292, 96952, 1054}, {36197209, 98008, 1064}, {36591372, 99072, 1082},
    {36989825, 100152, 1092}, {37392616, 101244, 1102}, {37799797, 102344, 1118},
    {38211409, 103460, 1128}, {38627504, 104588, 1136}, {39048131, 105724, 1154},
    {39473337, 106876, 1166}, {39903173, 108040, 1178}, {40337690, 109216, 1192},
    {40776937, 110408, 1200}, {41220970, 111608, 1218}, {41669836, 112824, 1230},
    {42123592, 114052, 1244}, {42582286, 115296, 1254}, {43045977, 116552, 1266},
    {43514717, 117820, 1282}, {43988561, 119104, 1294}, {44467565, 120400, 1310},
    {44951786, 121712, 1322}, {45441278, 123036, 1340}, {45936101, 124376, 1354},
    {46436314, 125728, 1372}, {46941971, 127100, 1382}, {47453135, 128484, 1398},
    {47969867, 129884, 1410}, {48492225, 131296, 1430}, {49020269, 132728, 1442},
    {49554065, 134172, 1460}, {50093674, 135632, 1478}, {50639159, 137108, 1496},
    {51190582, 138604, 1506}, {51748011, 140112, 1526}, {52311510, 141636, 1546},
    {52881146, 143180, 1558}, {53456983, 144740, 1574}, {54039091, 146316, 1592},
    {54627538, 147908, 1612}, {55222393, 149520, 1626}, {55823725, 151148, 1644},
    {56431607, 152792, 1666}, {57046106, 154456, 1684}, {57667297, 156140, 1698},
    {58295254, 157840, 1716}, {58930048, 159556, 1740}, {59571754, 161296, 1754},
    {60220447, 163052, 1774}, {60876205, 164828, 1792}, {61539104, 166620, 1818},
    {62209220, 168436, 1834}, {62886634, 170272, 1850}, {63571424, 172124, 1876},
    {64263672, 174000, 1892}, {64963458, 175892, 1918}, {65670863, 177808, 1938},
    {66385972, 179744, 1960},
}};
// clang-format on

constexpr uint32_t kFractionBits = 23, kFraction = (1u << kFractionBits) - 1;

/// 2^f of a fraction f of 23 bits, in units of 2^-23.
int64_t powerOfFraction(uint32_t fraction) {
  const PowerRow &row = powerRows[fraction >> 17];
  const uint32_t z = fraction & 0x1FFFF;
  return ((int64_t(row.c0) << 15) + int64_t(row.c1) * z + 2 * row.c2 * truncatedSquare(z, 17, 19) +
          24458) >>
         17;
}

} // namespace

float approximatePowerOfTwo(float x) {
  constexpr float most = 128, least = -127; // infinity and 0 are beyond
  if (std::isnan(x))
    return floatOf(0x7FFFFFFF);
  if (x >= most)
    return floatOf(0x7F800000);
  if (x <= least)
    return 0;
  const auto units = static_cast<uint32_t>(std::ldexp(std::fabs(x), kFractionBits));
  auto integer = static_cast<int>(units >> kFractionBits);
  uint32_t fraction = units & kFraction;
  if (std::signbit(x)) {
    integer = fraction ? ~integer : -integer;
    fraction = fraction ? ~fraction & kFraction : 0;
  }
  const auto power = static_cast<float>(powerOfFraction(fraction));
  return integer < -126 ? 0.f : std::ldexp(power, integer - int(kFractionBits));
}

float approximateSmallPowerOfTwo(float x) {
  if (!(x < -126.f))
    return approximatePowerOfTwo(x);
  const float root = approximatePowerOfTwo(x * 0.5f);
  return root * root;
}

} // namespace fp4::numerics
