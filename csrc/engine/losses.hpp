// Losses of single rows and their gradients with respect to the outputs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../tree.hpp"

namespace prunus::engine {

enum class Loss { squared, absolute, huber, quantile, poisson, gamma, tweedie, label, shares, chance };

// What is compared: the targets of a row, and a parameter of the loss, such as the quantile.
template <class Real>
struct Compared {
    const Real* target;
    std::int64_t outputs;
    Real parameter;
};

template <class Real>
Real sign(Real x) {
    return static_cast<Real>((x > 0) - (x < 0));
}

// The mean over the outputs of a loss that treats each on its own; `one(output, target, gradient)` returns the loss.
template <class Real, class One>
Real mean_of(const Real* out, const Compared<Real>& with, Real* grad, const One& one) {
    Real sum = 0;
    for (std::int64_t k = 0; k < with.outputs; ++k) {
        sum += one(out[k], with.target[k], grad[k]);
        grad[k] /= static_cast<Real>(with.outputs);
    }
    return sum / static_cast<Real>(with.outputs);
}

// Makes `grad` the probabilities of the classes; returns the logarithm of the sum of their exponentials.
template <class Real>
Real softmax(const Real* out, std::int64_t classes, Real* grad) {
    const Real largest = *std::max_element(out, out + classes);
    Real sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) sum += grad[k] = std::exp(out[k] - largest);
    for (std::int64_t k = 0; k < classes; ++k) grad[k] /= sum;
    return largest + std::log(sum);
}

// Minus the logarithm of the probability of the class whose number is the target.
template <class Real>
Real label_loss(const Real* out, const Compared<Real>& with, Real* grad) {
    const auto label = static_cast<std::int64_t>(with.target[0]);
    const Real loss = softmax(out, with.outputs, grad) - out[label];
    grad[label] -= 1;
    return loss;
}

// The cross-entropy of classes whose shares are the targets.
template <class Real>
Real shares_loss(const Real* out, const Compared<Real>& with, Real* grad) {
    const Real log_sum = softmax(out, with.outputs, grad);
    Real loss = 0;
    for (std::int64_t k = 0; k < with.outputs; ++k) {
        loss += with.target[k] * (log_sum - out[k]);
        grad[k] -= with.target[k];
    }
    return loss;
}

// The loss of a row; writes its gradient.
template <class Real>
Real row_loss(Loss loss, const Real* out, const Compared<Real>& with, Real* grad) {
    const Real p = with.parameter;
    switch (loss) {
        case Loss::label: return label_loss(out, with, grad);
        case Loss::shares: return shares_loss(out, with, grad);
        case Loss::squared:
            return mean_of(out, with, grad, [](Real o, Real y, Real& g) {
                g = 2 * (o - y);
                return (o - y) * (o - y);
            });
        case Loss::absolute:
            return mean_of(out, with, grad, [](Real o, Real y, Real& g) {
                g = sign(o - y);
                return std::abs(o - y);
            });
        case Loss::huber:
            return mean_of(out, with, grad, [](Real o, Real y, Real& g) {
                const Real error = o - y, size = std::abs(error);
                g = size <= 1 ? error : sign(error);
                return size <= 1 ? error * error / 2 : size - Real(0.5);
            });
        case Loss::quantile:
            return mean_of(out, with, grad, [p](Real o, Real y, Real& g) {
                g = o > y ? 1 - p : o < y ? -p : Real(0);
                return std::max(p * (y - o), (p - 1) * (y - o));
            });
        case Loss::poisson:
            return mean_of(out, with, grad, [](Real o, Real y, Real& g) {
                const Real mean = std::exp(o);
                g = mean - y;
                return mean - y * o;
            });
        case Loss::gamma:
            return mean_of(out, with, grad, [](Real o, Real y, Real& g) {
                const Real ratio = y * std::exp(-o);
                g = 1 - ratio;
                return o + ratio;
            });
        case Loss::tweedie:
            return mean_of(out, with, grad, [p](Real o, Real y, Real& g) {
                const Real high = std::exp(o * (2 - p)), low = y * std::exp(o * (1 - p));
                g = high - low;
                return high / (2 - p) - low / (1 - p);
            });
        case Loss::chance:
            return mean_of(out, with, grad, [](Real o, Real y, Real& g) {
                const Real small = std::exp(-std::abs(o));
                g = (o >= 0 ? 1 / (1 + small) : small / (1 + small)) - y;
                return std::max(o, Real(0)) - y * o + std::log1p(small);
            });
    }
    return Real(0);
}

}  // namespace prunus::engine
