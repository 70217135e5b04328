// Scratch memory that is reused without being cleared, and large pages for large outputs.
//
// Fresh memory costs a page fault for every 4 kB, which takes longer than the arithmetic done on it. So the kernels
// keep some memory between calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace prunus {

struct Block {
    void* data = nullptr;
    std::size_t bytes = 0;
};

// Keeps up to `max_bytes` bytes of returned blocks for later requests. The process has one pool, which is never
// destroyed because threads may outlive static objects.
class ScratchPool {
  public:
    static ScratchPool& instance() {
        static ScratchPool* pool = new ScratchPool;
        return *pool;
    }

    Block take(std::size_t bytes) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            const auto best = std::min_element(kept_.begin(), kept_.end(), [bytes](const Block& x, const Block& y) {
                return (x.bytes >= bytes ? x.bytes : SIZE_MAX) < (y.bytes >= bytes ? y.bytes : SIZE_MAX);
            });
            if (best != kept_.end() && best->bytes >= bytes) {
                const Block block = *best;
                total_ -= block.bytes;
                *best = kept_.back();
                kept_.pop_back();
                return block;
            }
        }
        void* data = std::malloc(bytes);
        if (data == nullptr) throw std::bad_alloc();
        return {data, bytes};
    }

    void give_back(Block block) noexcept {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (total_ + block.bytes <= max_bytes && kept_.size() < kept_.capacity()) {
                kept_.push_back(block);
                total_ += block.bytes;
                return;
            }
        }
        std::free(block.data);
    }

  private:
    static constexpr std::size_t max_bytes = std::size_t{64} << 20;
    ScratchPool() { kept_.reserve(256); }
    std::mutex mutex_;
    std::vector<Block> kept_;
    std::size_t total_ = 0;
};

// A growing array of plain values. Unlike std::vector it does not initialize its values.
template <class T>
class Buffer {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    Buffer() = default;
    explicit Buffer(std::size_t size) { reserve(size); }
    Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, Block{})) {}
    Buffer& operator=(Buffer&&) = delete;
    ~Buffer() {
        if (block_.data != nullptr) ScratchPool::instance().give_back(block_);
    }

    // Makes room for at least `size` values and keeps the old ones.
    void reserve(std::size_t size) {
        if (size * sizeof(T) <= block_.bytes) return;
        const Block grown = ScratchPool::instance().take(std::max(size * sizeof(T), 2 * block_.bytes));
        if (block_.data != nullptr) {
            std::copy_n(static_cast<const char*>(block_.data), block_.bytes, static_cast<char*>(grown.data));
            ScratchPool::instance().give_back(block_);
        }
        block_ = grown;
    }

    T* data() { return static_cast<T*>(block_.data); }
    const T* data() const { return static_cast<const T*>(block_.data); }
    T& operator[](std::size_t i) { return data()[i]; }
    const T& operator[](std::size_t i) const { return data()[i]; }

  private:
    Block block_;
};

// Brings memory that will be read in no particular order into the cache, a few lines at a time while other work goes
// on.
class Prefetch {
  public:
    Prefetch() = default;
    Prefetch(const void* data, std::size_t bytes) : next_(static_cast<const char*>(data)), end_(next_ + bytes) {}

    void some() { lines(16); }
    void rest() { lines((end_ - next_) / line + 1); }

  private:
    static constexpr std::ptrdiff_t line = 64;

    void lines(std::ptrdiff_t count) {
        for (; count > 0 && next_ < end_; --count, next_ += line) {
#if defined(__GNUC__) || defined(__clang__)
            __builtin_prefetch(next_, 0, 2);
#endif
        }
    }

    const char* next_ = nullptr;
    const char* end_ = nullptr;
};

// Asks the system for huge pages under a large output before it is first written. This is a hint, which some systems
// do not know.
inline void prefer_huge_pages(void* data, std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
    const auto begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) & ~(page - 1);
    const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes) & ~(page - 1);
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
    (void)data;
    (void)bytes;
#endif
}

}  // namespace prunus
