#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace decant {
namespace {

TEST(ThreadPool, RunsEveryChunkOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (const int64_t n : {0, 1, 2, 7, 100, 70000, 200001}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
      pool.parallel_for(n, [&](int worker, int64_t begin, int64_t end) {
        ASSERT_GE(worker, 0);
        ASSERT_LT(worker, threads);
        for (int64_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)].fetch_add(1);
      });
      for (const auto& h : hits) ASSERT_EQ(h.load(), 1);
    }
  }
}

TEST(ThreadPool, WritesAreVisibleAfterManyShortRegions) {
  ThreadPool pool(4);
  std::vector<int64_t> sums(16, 0);
  for (int64_t round = 0; round < 20000; ++round) {
    pool.parallel_for(16, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sums[static_cast<size_t>(i)] += round;
    });
  }
  for (const int64_t s : sums) EXPECT_EQ(s, int64_t{20000} * 19999 / 2);
}

TEST(ThreadPool, HelpersTakeWorkAfterSleeping) {
  ThreadPool pool(2);
  std::atomic<int> by_helper{0};
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // long past the spin
    pool.parallel_for(8, [&](int worker, int64_t begin, int64_t end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (worker != 0) by_helper += static_cast<int>(end - begin);
    });
  }
  EXPECT_GT(by_helper.load(), 0);
}

TEST(ThreadPool, WorkersAreNotSharedByChunksThatRunAtOnce) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<bool> shared{false};
  pool.parallel_for(1000, [&](int worker, int64_t, int64_t) {
    if (inside[static_cast<size_t>(worker)].fetch_add(1) != 0) shared = true;
    inside[static_cast<size_t>(worker)].fetch_sub(1);
  });
  EXPECT_FALSE(shared.load());
}

TEST(ThreadPool, SleepingPoolIsDestroyed) {
  ThreadPool pool(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace
}  // namespace decant
