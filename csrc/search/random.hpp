// Random numbers that are the same on every platform and with every compiler.
#pragma once

#include <cmath>
#include <cstdint>

namespace prunus::search {

// The generator splitmix64: one 64-bit word of state.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t bits() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    // From 0 to 1, without 1.
    double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

    // One of 0, 1, ..., n - 1.
    int below(int n) { return static_cast<int>(uniform() * n); }

    double normal() {
        const double radius = std::sqrt(-2 * std::log(1 - uniform()));
        return radius * std::cos(6.283185307179586 * uniform());
    }

  private:
    std::uint64_t state_;
};

}  // namespace prunus::search
