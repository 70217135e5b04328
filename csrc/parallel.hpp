// Runs the parts of a job on threads: on OpenMP's, which torch uses too, or on our own if the compiler has no OpenMP.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

#ifndef _OPENMP
#include <thread>
#include <vector>
#endif

namespace prunus {

// Calls part(p) once for each p in [0, parts), on at most `threads` threads, and returns when all are done. If parts
// throw exceptions, the first one is thrown again here.
template <class Part>
void parallel(int threads, std::int64_t parts, const Part& part) {
    if (threads <= 1 || parts <= 1) {
        for (std::int64_t p = 0; p < parts; ++p) part(p);
        return;
    }
    std::exception_ptr failure;
    std::atomic_flag failed = ATOMIC_FLAG_INIT;
    const auto guarded = [&](std::int64_t p) noexcept {
        try {
            part(p);
        } catch (...) {
            if (!failed.test_and_set()) failure = std::current_exception();
        }
    };
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (std::int64_t p = 0; p < parts; ++p) guarded(p);
#else
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
        for (std::int64_t p = next++; p < parts; p = next++) guarded(p);
    };
    std::vector<std::thread> pool;
    for (int i = 1; i < threads && i < parts; ++i) pool.emplace_back(work);
    work();
    for (auto& thread : pool) thread.join();
#endif
    if (failure) std::rethrow_exception(failure);
}

// The rows [begin, end).
struct Rows {
    std::int64_t begin, end;

    // Part p of n rows that are divided into equal parts.
    static Rows part(std::int64_t n, std::int64_t parts, std::int64_t p) {
        return {n * p / parts, n * (p + 1) / parts};
    }
};

// The number of parts of a job with this many pairs of sample and node: few for small jobs, and for large ones so many
// that one slow thread does not delay the others. It does not depend on the number of threads, so that the same sums
// are added in the same order whatever that number is.
inline std::int64_t number_of_parts(std::int64_t pairs) {
    constexpr std::int64_t small = std::int64_t{1} << 14, large = std::int64_t{1} << 18;
    const std::int64_t few = std::min<std::int64_t>(pairs / small, 4), many = std::min<std::int64_t>(pairs / large, 64);
    return std::max({std::int64_t{1}, few, many});
}

}  // namespace prunus
