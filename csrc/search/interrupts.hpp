// Work on threads that Ctrl-C can stop.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace prunus::search {

// Calls part(p, stop) once for each p in [0, parts), on at most `threads` threads, without Python's lock. Meanwhile this
// thread asks Python every 20 ms whether a signal has come; if its handler raises an error, `stop` becomes true, and
// the error is raised here when all parts have returned.
template <class Part>
void run_parts(int threads, std::int64_t parts, const Part& part) {
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> next{0};
    std::mutex mutex;
    std::condition_variable done;
    std::exception_ptr failure;
    int working = static_cast<int>(threads < 1 ? 1 : threads);
    if (parts < working) working = static_cast<int>(parts);
    const auto work = [&] {
        for (std::int64_t p = next++; p < parts && !stop; p = next++) {
            try {
                part(p, stop);
            } catch (...) {
                const std::lock_guard<std::mutex> lock(mutex);
                if (!failure) failure = std::current_exception();
                stop = true;
            }
        }
        const std::lock_guard<std::mutex> lock(mutex);
        if (--working == 0) done.notify_one();
    };
    std::vector<std::thread> pool;
    const int wanted = working;
    for (int i = 0; i < wanted; ++i) {
        try {
            pool.emplace_back(work);
        } catch (const std::system_error&) {  // no more threads can be had: those that there are do it all
            if (pool.empty()) throw;
            const std::lock_guard<std::mutex> lock(mutex);
            working -= wanted - i;
            break;
        }
    }
    bool interrupted = false;
    {
        const nanobind::gil_scoped_release unlocked;
        std::unique_lock<std::mutex> lock(mutex);
        while (!done.wait_for(lock, std::chrono::milliseconds(20), [&] { return working == 0; })) {
            lock.unlock();
            if (!interrupted) {
                const nanobind::gil_scoped_acquire locked;
                if (PyErr_CheckSignals() != 0) interrupted = stop = true;
            }
            lock.lock();
        }
    }
    for (auto& thread : pool) thread.join();
    if (interrupted) throw nanobind::python_error();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace prunus::search
