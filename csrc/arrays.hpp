// Arrays that come from Python, and checks of their sizes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <optional>
#include <string>

namespace prunus {

namespace nb = nanobind;

template <class Real>
using Matrix = nb::ndarray<Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class Real>
using Tensor3 = nb::ndarray<Real, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class Real>
using Vector = nb::ndarray<Real, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class Real>
using Scalar = nb::ndarray<Real, nb::ndim<0>, nb::c_contig, nb::device::cpu>;
template <class Real>
using Weight = std::optional<Vector<const Real>>;

// Every kernel trusts the sizes of its arrays. These functions are what makes that safe: they raise Python's ValueError
// before a kernel could read or write beyond an array.
template <class Array>
void expect(const char* name, const Array& array, std::initializer_list<std::size_t> sizes) {
    std::size_t i = 0;
    for (const std::size_t size : sizes) {
        if (array.shape(i) != size) {
            const std::string given = std::to_string(array.shape(i)), wanted = std::to_string(size);
            const std::string message = std::string(name) + " must have size " + wanted + " in dimension " +
                                        std::to_string(i) + ", got " + given;
            throw nb::value_error(message.c_str());
        }
        ++i;
    }
}

template <class Array>
void expect(const char* name, const std::optional<Array>& array, std::initializer_list<std::size_t> sizes) {
    if (array) expect(name, *array, sizes);
}

// The number of nodes of a complete tree with this many splits.
inline std::size_t nodes_of(std::size_t splits) {
    constexpr std::size_t most = std::size_t{1} << 30;  // nodes are counted by 32-bit integers
    if (splits >= most) throw nb::value_error("the number of splits must be below 2**30");
    if (((splits + 1) & splits) != 0) throw nb::value_error("the number of splits must be 2**depth - 1");
    return 2 * splits + 1;
}

}  // namespace prunus
