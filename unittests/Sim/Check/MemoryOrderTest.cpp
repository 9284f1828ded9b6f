// Order by fences and strong operations, by the letter of PTX ISA, "Memory Consistency Model": the
// tests of herd (MP, SB, LB, WRC, ISA2, IRIW, 2+2W) with each strength and scope, in both modes.
#include "Litmus.h"

using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

enum Place { SameCta, SameCluster, Elsewhere }; ///< of the threads that communicate
constexpr Place kPlaces[] = {SameCta, SameCluster, Elsewhere};

Litmus placed(Place place, uint32_t threads = 1) {
  Litmus test{};
  test.threads = place == SameCta ? 32 * threads : 32;
  test.cluster = place == SameCluster ? threads : 1;
  test.clusters = place == Elsewhere ? threads : 1;
  return test;
}

/// Programs of threads that run beside each other, each in a warp or CTA of its own.
std::string threadsOf(Place place, const std::vector<std::string> &programs) {
  std::string text = place == SameCta ? "  shr.u32 %r5, %t, 5;\n  and.b32 %r7, %t, 31;\n"
                                      : "  mov.u32 %r5, %ctaid.x;\n  mov.u32 %r7, %t;\n";
  text += "  setp.ne.u32 %p2, %r7, 0;\n  @%p2 bra END;\n";
  for (size_t i = 0; i < programs.size(); ++i)
    text += fmt::format("  setp.ne.u32 %p2, %r5, {0};\n  @%p2 bra AFTER{0};\n{1}  bra END;\n"
                        "AFTER{0}:\n",
                        i, programs[i]);
  return litmus(text + "END:\n");
}

/// Reads a word until it is at least `value`.
std::string await(const std::string &load, const std::string &word, int value = 1) {
  static int count = 0;
  const std::string label = fmt::format("AWAIT{}", count++);
  return fmt::format("{}:\n  {} %r6, [{}];\n  setp.lt.u32 %p3, %r6, {};\n  @%p3 bra {};\n", label,
                     load, word, value, label);
}

bool isClean(const std::string &text, const Litmus &test, bool strict) {
  const Judged judged = judge(text, schedules()[0], test, strict);
  EXPECT_EQ(judged.error, "") << text;
  return judged.reports.empty();
}

struct Fence {
  const char *sem = nullptr; ///< null: none
  Place reach = SameCta;

  std::string text() const {
    static constexpr const char *scopes[] = {"cta", "cluster", "gpu"};
    return sem ? fmt::format("  fence.{}.{};\n", sem, scopes[reach]) : "";
  }
  bool is(std::initializer_list<std::string_view> sems, Place place) const {
    return sem && reach >= place && std::ranges::find(sems, sem) != sems.end();
  }
  bool releases(Place place) const { return is({"release", "acq_rel", "sc"}, place); }
  bool acquires(Place place) const { return is({"acquire", "acq_rel", "sc"}, place); }
  bool sc(Place place) const { return is({"sc"}, place); }
};

std::vector<Fence> fences(std::initializer_list<const char *> sems) {
  std::vector<Fence> all = {{}};
  for (const char *sem : sems)
    for (const Place reach : kPlaces)
      all.push_back({sem, reach});
  return all;
}

const std::string write = "  st.global.b32 [%out], 7;\n", read = "  ld.global.b32 %v0, [%out];\n",
                  raise = "  st.relaxed.gpu.global.b32 [%out+64], 1;\n";

/// MP: a value and a flag. LB is the same with the read first and the write behind the flag.
TEST(MemoryOrder, AFlagBetweenTwoFences) {
  for (const Place place : kPlaces)
    for (const Fence &first : fences({"release", "acquire", "acq_rel", "sc"}))
      for (const Fence &second : fences({"release", "acquire", "acq_rel", "sc"}))
        for (const bool strict : {false, true}) {
          const bool loads = strict; // each order of the two in one of the modes
          const std::string text = threadsOf(place, {(loads ? read : write) + first.text() + raise,
                                                     await("ld.relaxed.gpu.global.b32", "%out+64") +
                                                         second.text() + (loads ? write : read)});
          EXPECT_EQ(isClean(text, placed(place, 2), strict),
                    first.releases(place) && second.acquires(place))
              << text;
        }
}

/// The operations on the flag must have scopes that reach, too.
TEST(MemoryOrder, TheScopesOfTheFlag) {
  static constexpr const char *scopes[] = {"cta", "cluster", "gpu"};
  for (const Place place : kPlaces)
    for (const Place writer : kPlaces)
      for (const Place reader : kPlaces) {
        const std::string text = threadsOf(
            place,
            {write + fmt::format("  fence.acq_rel.gpu;\n  st.relaxed.{}.global.b32 [%out+64], 1;\n",
                                 scopes[writer]),
             await(fmt::format("ld.relaxed.{}.global.b32", scopes[reader]), "%out+64") +
                 "  fence.acq_rel.gpu;\n" + read});
        EXPECT_EQ(isClean(text, placed(place, 2), false), writer >= place && reader >= place)
            << text;
      }
}

/// membar is a fence.sc, and a narrow fence takes nothing from a wide one before it.
TEST(MemoryOrder, SynonymsAndSeveralFences) {
  const std::string taken =
      await("ld.relaxed.gpu.global.b32", "%out+64") + "  fence.acq_rel.gpu;\n" + read;
  const auto fenced = [&](const std::string &fence) {
    return isClean(threadsOf(Elsewhere, {write + fence + raise, taken}), placed(Elsewhere, 2),
                   false);
  };
  EXPECT_TRUE(fenced("  membar.gl;\n"));
  EXPECT_TRUE(fenced("  membar.sys;\n"));
  EXPECT_FALSE(fenced("  membar.cta;\n"));
  EXPECT_TRUE(fenced("  fence.acq_rel.gpu;\n  fence.acq_rel.cta;\n"));
  EXPECT_FALSE(fenced("  fence.acq_rel.cta;\n  fence.acq_rel.cluster;\n"));
}

/// WRC and ISA2: the thread in the middle must pass on what it knows. Two fence.sc at the ends say
/// nothing where none is in the middle: causality order is no chain of observations.
/// The load behind it is the first to observe the flag.
TEST(MemoryOrder, AReductionObservesNothing) {
  const auto behind = [&](const std::string &fence) {
    const std::string reader = "  red.relaxed.gpu.global.or.b32 [%out+64], 0;\n" +
                               await("ld.relaxed.gpu.global.b32", "%out+64") + fence + read;
    return isClean(
        threadsOf(Elsewhere, {write + "  fence.acq_rel.gpu;\n" + raise, reader}),
        placed(Elsewhere, 2), false);
  };
  EXPECT_TRUE(behind("  fence.acq_rel.gpu;\n"));
  EXPECT_FALSE(behind(""));
}

TEST(MemoryOrder, ThreeThreads) {
  const auto strengths = {Fence{}, Fence{"acq_rel", Elsewhere}, Fence{"sc", Elsewhere}};
  for (const Fence &first : strengths)
    for (const Fence &middle : strengths)
      for (const Fence &last : strengths)
        for (const bool strict : {false, true}) {
          const std::string text = threadsOf(
              Elsewhere, {write + first.text() + raise,
                          await("ld.relaxed.gpu.global.b32", "%out+64") + middle.text() +
                              "  st.relaxed.gpu.global.b32 [%out+128], 1;\n",
                          await("ld.relaxed.gpu.global.b32", "%out+128") + last.text() + read});
          EXPECT_EQ(isClean(text, placed(Elsewhere, 3), strict),
                    first.sem && middle.sem && last.sem)
              << text;
        }
}

/// Observation order goes on through atomic operations of others, and ends at their stores.
TEST(MemoryOrder, AtomicsContinueWhatAStoreEnds) {
  const auto through = [](const std::string &middle) {
    const std::string text =
        threadsOf(Elsewhere, {write + "  st.release.gpu.global.b32 [%out+64], 1;\n",
                              await("ld.relaxed.gpu.global.b32", "%out+64") + middle,
                              await("ld.acquire.gpu.global.b32", "%out+64", 2) + read});
    return isClean(text, placed(Elsewhere, 3), false);
  };
  EXPECT_TRUE(through("  atom.relaxed.gpu.global.add.u32 %r7, [%out+64], 1;\n"));
  EXPECT_TRUE(through("  red.relaxed.gpu.global.add.u32 [%out+64], 1;\n"));
  EXPECT_FALSE(through("  st.relaxed.gpu.global.b32 [%out+64], 2;\n"));
  EXPECT_TRUE(through("  fence.acq_rel.gpu;\n  st.relaxed.gpu.global.b32 [%out+64], 2;\n"));
}

/// A store behind a release of the same thread is part of the pattern.
TEST(MemoryOrder, AStoreOfTheSameThreadContinues) {
  const std::string text =
      threadsOf(Elsewhere, {write + "  st.release.gpu.global.b32 [%out+64], 1;\n"
                                    "  st.relaxed.gpu.global.b32 [%out+64], 2;\n",
                            await("ld.acquire.gpu.global.b32", "%out+64", 2) + read});
  EXPECT_TRUE(isClean(text, placed(Elsewhere, 2), false));
}

/// red; fence is no acquire pattern, atom; fence is one.
TEST(MemoryOrder, AReductionAcquiresNothing) {
  const std::string late = "  mov.u32 %r8, 0;\nWORK:\n  add.u32 %r8, %r8, 1;\n"
                           "  setp.lt.u32 %p6, %r8, 4000;\n  @%p6 bra WORK;\n";
  const auto takenBy = [&](const std::string &operation) {
    return isClean(threadsOf(SameCta, {write + "  red.release.gpu.global.add.u32 [%out+64], 1;\n",
                                       late + operation + "  fence.acq_rel.gpu;\n" + read}),
                   placed(SameCta, 2), false);
  };
  EXPECT_TRUE(takenBy("  atom.relaxed.gpu.global.add.u32 %r6, [%out+64], 1;\n"));
  EXPECT_FALSE(takenBy("  red.relaxed.gpu.global.add.u32 [%out+64], 1;\n"));
}

/// SB, IRIW and 2+2W have strong accesses alone: whatever their values, they do not race. A weak
/// one does.
TEST(MemoryOrder, StrongAccessesDoNotRace) {
  const std::string x = "[%out+64]", y = "[%out+128]";
  const auto st = [](const std::string &at) {
    return "  st.relaxed.gpu.global.b32 " + at + ", 1;\n";
  };
  const auto ld = [](const std::string &at) {
    return "  ld.relaxed.gpu.global.b32 %r6, " + at + ";\n";
  };
  for (const Fence &fence : {Fence{}, Fence{"acq_rel", Elsewhere}, Fence{"sc", Elsewhere}}) {
    const std::vector<std::string> tests[] = {
        {st(x) + fence.text() + ld(y), st(y) + fence.text() + ld(x)},
        {st(x), st(y), ld(x) + fence.text() + ld(y), ld(y) + fence.text() + ld(x)},
        {st(x) + fence.text() + st(y), st(y) + fence.text() + st(x)}};
    for (const auto &test : tests)
      for (const bool strict : {false, true}) {
        const auto count = uint32_t(test.size());
        const std::string text = threadsOf(Elsewhere, test);
        EXPECT_TRUE(isClean(text, placed(Elsewhere, count), strict)) << text;
        EXPECT_FALSE(isClean(
            replaced(text, "st.relaxed.gpu.global.b32 [%out+64], 1", "st.global.b32 [%out+64], 3"),
            placed(Elsewhere, count), strict))
            << text;
      }
  }
}

/// CTAs store, count, and the last one reads what all have stored: with a fence of all threads
/// before the barrier, of thread 0 behind it, of thread 0 behind the count, and of all before they
/// read. Thread 0 counts for the others: release and acquire patterns are its own, and a fence.sc
/// of any thread is ordered by the count between the barriers.
TEST(MemoryOrder, TheLastBlock) {
  const auto choices = {Fence{}, Fence{"acq_rel", Elsewhere}, Fence{"sc", SameCta},
                        Fence{"sc", Elsewhere}};
  const auto byFirst = [](const Fence &fence) {
    return fence.sem ? "  @%p0" + fence.text() : std::string();
  };
  Litmus test = placed(Elsewhere, 2);
  test.threads = 64;
  for (const Fence &stored : choices)
    for (const Fence &before : choices)
      for (const Fence &behind : choices)
        for (const Fence &reading : choices) {
          const std::string text = litmus(
              "  mov.u32 %r5, %ctaid.x;\n  mad.lo.u32 %r6, %r5, 64, %t;\n"
              "  mad.wide.u32 %rd5, %r6, 4, %out;\n  st.global.b32 [%rd5+256], %t;\n" +
              stored.text() + "  bar.sync 0;\n" + byFirst(before) + "  @!%p0 bra COUNTED;\n" +
              "  atom.relaxed.gpu.global.add.u32 %r7, [%out], 1;\n  st.shared.b32 [%r1], %r7;\n" +
              "COUNTED:\n" + byFirst(behind) +
              "  bar.sync 0;\n  ld.shared.b32 %r7, [%r1];\n  setp.ne.u32 %p2, %r7, 1;\n"
              "  @%p2 bra END;\n" +
              reading.text() +
              "  xor.b32 %r6, %r6, 64;\n  mad.wide.u32 %rd5, %r6, 4, %out;\n"
              "  ld.global.b32 %v0, [%rd5+256];\nEND:\n");
          const bool strong = stored.sc(Elsewhere) || before.sc(Elsewhere);
          const bool ordered = (before.releases(Elsewhere) && behind.acquires(Elsewhere)) ||
                               (strong && (behind.sc(Elsewhere) || reading.sc(Elsewhere)));
          for (const bool strict : {false, true})
            EXPECT_EQ(isClean(text, test, strict), ordered) << text;
        }
}

/// The last of many blocks reads a word of each.
TEST(MemoryOrder, TheLastOfManyBlocks) {
  const std::string text = threadsOf(SameCta, {R"(
  mov.u32 %r5, %ctaid.x;
  mad.wide.u32 %rd5, %r5, 4, %out;
  st.global.b32 [%rd5+256], 7;
  fence.sc.gpu;
  atom.relaxed.gpu.global.add.u32 %r6, [%out], 1;
  setp.ne.u32 %p3, %r6, 69;
  @%p3 bra END;
  fence.sc.gpu;
SUM:
  sub.u32 %r6, %r6, 1;
  mad.wide.u32 %rd5, %r6, 4, %out;
  ld.global.b32 %v0, [%rd5+256];
  setp.ne.u32 %p3, %r6, 0;
  @%p3 bra SUM;
)"});
  Litmus test = placed(Elsewhere, 70);
  for (const bool strict : {false, true}) {
    EXPECT_TRUE(isClean(text, test, strict));
    EXPECT_FALSE(isClean(replaced(text, "fence.sc.gpu", "fence.sc.cluster"), test, strict));
  }
}

/// A fence.proxy.async counts anywhere on the way from the stores to the copy: before the barrier
/// by all who store, or behind it by the thread that issues the copy.
TEST(MemoryOrder, AProxyFenceOnTheWay) {
  const std::string fence = "  fence.proxy.async.shared::cta;\n";
  const auto copied = [&](const std::string &before, const std::string &behind, bool strict) {
    const Judged judged =
        judge(litmus("  setp.eq.u32 %p2, %t, 32;\n  st.shared.b32 [%r0], %t;\n" + before +
                     "  bar.sync 0;\n" + behind +
                     "  @!%p0 bra END;\n"
                     "  cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 256;\n"
                     "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\nEND:\n"),
              schedules()[0], {}, strict);
    EXPECT_EQ(judged.error, "");
    for (const HazardReport &report : judged.reports)
      EXPECT_EQ(report.rule, HazardRule::MissingProxyFence);
    return judged.reports.empty();
  };
  for (const bool strict : {false, true}) {
    EXPECT_TRUE(copied(fence, "", strict));
    EXPECT_TRUE(copied("", fence, strict));
    EXPECT_TRUE(copied("", "  @%p0" + fence, strict));
    EXPECT_TRUE(copied("", "  @%p2" + fence + "  bar.warp.sync -1;\n  bar.sync 0;\n", strict));
    EXPECT_FALSE(copied("", "", strict));
    EXPECT_FALSE(copied("  @%p0" + fence, "", strict)); // before it knows of the other warp
    EXPECT_FALSE(copied("", "  @%p2" + fence, strict)); // not on the way
  }
}

/// Thread 32 adds or stores, and thread 0 arrives for the CTA without knowing of it. A read behind
/// the arrivals need not see the contribution.
TEST(MemoryOrder, AnArrivalThatPublishesNothing) {
  const auto text = [](const std::string &contribution, const std::string &meet) {
    return litmus("  mov.u32 %r5, %ctaid.x;\n  setp.eq.u32 %p2, %t, 32;\n"
                  "  mul.wide.u32 %rd5, %r5, 4;\n  add.u64 %rd5, %rd5, %out;\n  @%p2 " +
                  contribution + ";\n" + meet +
                  "  @!%p0 bra ARRIVED;\n  fence.acq_rel.gpu;\n"
                  "  red.relaxed.gpu.global.add.u32 [%out+128], 1;\n" +
                  await("ld.acquire.gpu.global.b32", "%out+128", 2) +
                  "ARRIVED:\n  bar.warp.sync -1;\n  bar.sync 0;\n"
                  "  @%p2 ld.global.b32 %v0, [%out];\n  @%p2 ld.global.b32 %v1, [%out+4];\n"
                  "  @%p2 st.global.v2.b32 [%rd5+512], {%v0, %v1};\n");
  };
  Litmus test = placed(Elsewhere, 2);
  test.threads = 64;
  const std::string stride = "  mad.wide.u32 %rd5, %r5, 8, %out;\n  @%p2 st.global.v2";
  for (const std::string contribution :
       {"st.global.b32 [%rd5], 1", "atom.global.add.u32 %r8, [%out], 1",
        "red.global.add.u32 [%out], 1", "st.relaxed.gpu.global.b32 [%rd5], 1"})
    for (const bool strict : {false, true})
      for (const bool meets : {false, true}) {
        const std::string ptx =
            replaced(text(contribution, meets ? "  bar.warp.sync -1;\n  bar.sync 0;\n" : ""),
                     "  @%p2 st.global.v2", stride);
        EXPECT_EQ(isClean(ptx, test, strict), meets) << ptx;
      }
}

/// The last of two CTAs that add reads the sum: its own addition hides nothing. A value that its
/// own atomic operation returns has what the other one added, so it may clear the sum.
TEST(MemoryOrder, TheLastOfTwoThatAdd) {
  const auto text = [](const std::string &add, const std::string &then) {
    return threadsOf(Elsewhere, {"  red.relaxed.gpu.global.add.u32 [%out], 1;\n" + raise,
                                 await("ld.relaxed.gpu.global.b32", "%out+64") + add + then});
  };
  const std::string red = "  red.relaxed.gpu.global.add.u32 [%out], 1;\n",
                    atom = "  atom.relaxed.gpu.global.add.u32 %r6, [%out], 1;\n"
                           "  setp.ne.u32 %p3, %r6, 1;\n  @%p3 bra END;\n",
                    clear = "  st.global.b32 [%out], 0;\n";
  EXPECT_FALSE(isClean(text(red, read), placed(Elsewhere, 2), false));
  EXPECT_FALSE(isClean(text(red, clear), placed(Elsewhere, 2), false));
  EXPECT_TRUE(isClean(text(atom, clear), placed(Elsewhere, 2), false));
}

/// A plain load beside atomics: a guess that an atomic operation makes good is accepted by default,
/// any other use is not.
TEST(MemoryOrder, GuessesThatAtomicsMakeGood) {
  const std::string load = "  ld.global.b32 %r5, [%out];\n";
  const std::string swap = load + "AGAIN:\n  mov.u32 %r8, %r5;\n  add.u32 %r6, %r8, 1;\n"
                                  "  atom.global.cas.b32 %r5, [%out], %r8, %r6;\n"
                                  "  setp.ne.u32 %p2, %r5, %r8;\n  @%p2 bra AGAIN;\n";
  const std::string largest = load + "  setp.ge.u32 %p2, %r5, %t;\n  @%p2 bra LESS;\n"
                                     "  red.global.max.u32 [%out], %t;\nLESS:\n";
  const std::string guarded = load + "  setp.lt.u32 %p2, %r5, %t;\n"
                                     "  @%p2 red.global.max.u32 [%out], %t;\n";
  const std::string own = "  mad.wide.u32 %rd5, %t, 4, %out;\n";
  const std::string stored = own + load +
                             "  red.global.add.u32 [%out], 1;\n"
                             "  st.global.b32 [%rd5+256], %r5;\n";
  const std::string alsoStored = own + guarded + "  st.global.b32 [%rd5+256], %r5;\n";
  for (const std::string &guess : {swap, largest, guarded}) {
    EXPECT_TRUE(isClean(litmus(guess), placed(SameCta, 2), false)) << guess;
    EXPECT_FALSE(isClean(litmus(guess), placed(SameCta, 2), true)) << guess;
    EXPECT_FALSE(
        isClean(litmus(guess + "  st.global.b32 [%out], %t;\n"), placed(SameCta, 2), false));
  }
  // Arguments of a call are stored: the call itself uses no register.
  const std::string silent = "  setp.gt.u32 %p3, %t, 100000;\n  @!%p3 bra SILENT;\n",
                    parameters = "{\n  .param .b64 a0;\n  .param .b64 a1;\n  .param .b32 r0;\n",
                    said = "  call.uni (r0), vprintf, (a0, a1);\n}\nSILENT:\n";
  EXPECT_TRUE(isClean(litmus(swap + silent + parameters + said), placed(SameCta, 2), false));
  EXPECT_FALSE(isClean(litmus(load + "  red.global.add.u32 [%out], 1;\n" + parameters +
                              "  st.param.b32 [a0], %r5;\n" + silent + said),
                       placed(SameCta, 2), false));
  const auto beside = [&](const std::string &operation) {
    return isClean(litmus(own + "  mov.u32 %r8, 0;\n  @%p0 " + operation + ";\n" + load +
                          "  st.global.b32 [%rd5+256], %r5;\n"),
                   placed(SameCta, 2), false);
  };
  EXPECT_TRUE(beside("atom.global.add.u32 %r6, [%out], %r8"));
  EXPECT_TRUE(beside("atom.global.cas.b32 %r6, [%out], %r8, 0"));
  EXPECT_FALSE(beside("atom.global.max.u32 %r6, [%out], %r8"));
  EXPECT_FALSE(beside("atom.global.cas.b32 %r6, [%out], %r8, 1"));
  for (const std::string &used : {stored, alsoStored})
    EXPECT_FALSE(isClean(litmus(used), placed(SameCta, 2), false)) << used;
}

} // namespace
