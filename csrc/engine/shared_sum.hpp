// Sums of arrays over the processes of one machine, through memory that they share.
//
// Every process has a counter and two slots in that memory. For a sum it writes its numbers to one of the slots, counts
// up, waits until all have done so, and adds the slots in the order of the processes: all get the same sums, to the last
// bit. The next sum uses the other slots. A process that writes to a slot again has waited for everybody in the sum
// between, which nobody enters before having read the slots of the sum before that.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

namespace prunus::engine {

class SharedSum {
  public:
    static constexpr std::int64_t line = 64;  // bytes of a counter, so that no two are in one line of the cache
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes can share no other counters");

    // The memory must be zero at first.
    SharedSum(unsigned char* memory, int rank, int size, std::int64_t slot)
        : memory_(memory), rank_(rank), size_(size), slot_(slot) {}

    // waiting(seconds) is called now and then while other processes are late; it may throw an exception.
    template <class Real, class Waiting>
    void operator()(Real* data, std::int64_t count, const Waiting& waiting) {
        const auto most = slot_ / static_cast<std::int64_t>(sizeof(Real));
        for (std::int64_t begin = 0; begin < count; begin += most) {
            some(data + begin, std::min(most, count - begin), waiting);
        }
    }

  private:
    template <class Real, class Waiting>
    void some(Real* data, std::int64_t count, const Waiting& waiting) {
        const std::uint64_t turn = ++turn_;
        std::memcpy(slot(rank_, turn), data, count * sizeof(Real));
        counter(rank_).store(turn, std::memory_order_release);
        for (int k = 0; k < size_; ++k) wait(k, turn, waiting);
        std::memcpy(data, slot(0, turn), count * sizeof(Real));
        for (int k = 1; k < size_; ++k) {
            const Real* other = reinterpret_cast<const Real*>(slot(k, turn));
            for (std::int64_t i = 0; i < count; ++i) data[i] += other[i];
        }
    }

    // Waits for a process: at first without leaving the processor, for it is usually there soon; then in turns with
    // other programs, for some milliseconds; then asleep.
    template <class Waiting>
    void wait(int k, std::uint64_t turn, const Waiting& waiting) {
        constexpr int spins = 2000, yields = 5000;
        const auto is_there = [&] { return counter(k).load(std::memory_order_acquire) >= turn; };
        for (int i = 0; i < spins; ++i) {
            if (is_there()) return;
        }
        for (int i = 0; i < yields; ++i) {
            if (is_there()) return;
            std::this_thread::yield();
        }
        const auto start = std::chrono::steady_clock::now();
        double told = 0;
        while (!is_there()) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
            const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
            if (waited.count() < told + 0.2) continue;
            told = waited.count();
            waiting(told);
        }
    }

    std::atomic<std::uint64_t>& counter(int k) {
        return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_ + k * line);
    }
    unsigned char* slot(int k, std::uint64_t turn) {
        return memory_ + size_ * line + (2 * k + static_cast<std::int64_t>(turn % 2)) * slot_;
    }

    unsigned char* memory_;
    int rank_, size_;
    std::int64_t slot_;
    std::uint64_t turn_ = 0;
};

}  // namespace prunus::engine
