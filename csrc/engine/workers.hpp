// Threads that sleep while there is nothing to do. A step asks them several times, each time for some tenths of a
// millisecond of work; threads that wait by spinning would take the cores from each other and from other programs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace prunus::engine {

class Workers {
  public:
    explicit Workers(int threads) {
        for (int i = 1; i < threads; ++i) others_.emplace_back([this] { serve(); });
    }

    ~Workers() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            over_ = true;
        }
        wake_.notify_all();
        for (auto& thread : others_) thread.join();
    }

    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // Calls part(p) once for each p in [0, parts) and returns when all are done. If parts throw exceptions, the first
    // one is thrown again here.
    template <class Part>
    void run(std::int64_t parts, const Part& part) {
        if (others_.empty() || parts <= 1) {
            for (std::int64_t p = 0; p < parts; ++p) part(p);
            return;
        }
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            part_ = [&part](std::int64_t p) { part(p); };
            parts_ = parts;
            next_ = 0;
            failure_ = nullptr;
            working_ = others_.size();
            ++round_;
        }
        wake_.notify_all();
        work();
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return working_ == 0; });
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    void work() {
        for (std::int64_t p = next_++; p < parts_; p = next_++) {
            try {
                part_(p);
            } catch (...) {
                const std::lock_guard<std::mutex> lock(mutex_);
                if (!failure_) failure_ = std::current_exception();
            }
        }
    }

    void serve() {
        std::uint64_t seen = 0;
        while (true) {
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] { return over_ || round_ != seen; });
                if (over_) return;
                seen = round_;
            }
            work();
            const std::lock_guard<std::mutex> lock(mutex_);
            if (--working_ == 0) done_.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::function<void(std::int64_t)> part_;
    std::atomic<std::int64_t> next_{0};
    std::int64_t parts_ = 0;
    std::size_t working_ = 0;
    std::uint64_t round_ = 0;
    bool over_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> others_;  // the last member: the threads use the others from their start on
};

}  // namespace prunus::engine
