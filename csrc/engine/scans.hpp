// Goes through all examples in blocks, on several threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../memory.hpp"
#include "../parallel.hpp"
#include "examples.hpp"
#include "leaves.hpp"
#include "network.hpp"
#include "reach.hpp"
#include "workers.hpp"

namespace prunus::engine {

// Memory for one part of the examples.
template <class Real>
struct Scan {
    Batch<Real> batch;
    Reached<Real> reached;
    Routed<Real> routed;
    Network<Real> network;
    Buffer<Real> scratch, out;
};

template <class Real>
class Scans {
  public:
    // The number of parts; it does not depend on the number of threads.
    static std::int64_t parts(std::int64_t rows) { return std::clamp<std::int64_t>(rows / (4 * block), 1, 8); }

    // Finds what every step-th example reaches, block by block, and calls visit(scan, part) after each. A part ends when
    // a visit returns false.
    template <class Visit>
    void operator()(const Examples<Real>& examples, std::int64_t step, const Splits<Real>& splits, Workers& workers,
                    const Visit& visit) {
        const std::int64_t rows = (examples.n + step - 1) / step, n_parts = parts(rows);
        if (static_cast<std::int64_t>(scans_.size()) < n_parts) scans_.resize(n_parts);
        workers.run(n_parts, [&](std::int64_t p) {
            const Rows all = Rows::part(rows, n_parts, p);
            Scan<Real>& scan = scans_[p];
            for (std::int64_t begin = all.begin; begin < all.end; begin += block) {
                const std::int64_t count = std::min(block, all.end - begin);
                scan.batch.gather(examples, nullptr, begin * step, step, count);
                reach(scan.batch, Rows{0, count}, splits, scan.scratch, scan.reached);
                if (!visit(scan, p)) return;
            }
        });
    }

  private:
    static constexpr std::int64_t block = 512;
    std::vector<Scan<Real>> scans_;
};

}  // namespace prunus::engine
