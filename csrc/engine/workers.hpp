// Threads that sleep while there is nothing to do. A step asks them several times, each time for some tenths of a
// millisecond of work; threads that wait by spinning would take the cores from each other and from other programs.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <unistd.h>
#endif

namespace prunus::engine {

// A number that a forked process does not share with its parent.
inline std::int64_t this_process() {
#ifdef _WIN32
    return 0;  // there are no forks
#else
    return getpid();
#endif
}

class Pool {
  public:
    explicit Pool(int threads) {
        constexpr int most = 256;
        const int wanted = std::min(threads, most) - 1;
        others_.reserve(wanted);  // so that nothing but the start of a thread can fail below
        try {
            for (int i = 0; i < wanted; ++i) others_.emplace_back([this] { serve(); });
        } catch (const std::system_error&) {
            // The system gives no more threads; those that there are do all the work.
        }
    }

    ~Pool() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            over_ = true;
        }
        wake_.notify_all();
        for (auto& thread : others_) thread.join();
    }

    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    template <class Part>
    void run(std::int64_t parts, const Part& part) {
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

// Runs the parts of a job on this thread and on those of a pool. A forked process has a copy of the pool without its
// threads: it does the work alone, and leaves the copy as it is, because to destroy it would mean to wait for them.
class Workers {
  public:
    explicit Workers(int threads) : pool_(threads > 1 ? new Pool(threads) : nullptr) {}

    ~Workers() {
        if (is_forked()) (void)pool_.release();
    }

    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // Calls part(p) once for each p in [0, parts) and returns when all are done. If parts throw exceptions, one of them
    // is thrown again here.
    template <class Part>
    void run(std::int64_t parts, const Part& part) {
        if (parts > 1 && pool_ && !is_forked()) return pool_->run(parts, part);
        for (std::int64_t p = 0; p < parts; ++p) part(p);
    }

  private:
    bool is_forked() const { return this_process() != process_; }

    std::int64_t process_ = this_process();
    std::unique_ptr<Pool> pool_;
};

}  // namespace prunus::engine
