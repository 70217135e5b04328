// The classes of the engine in the Python module.
#pragma once

#include <nanobind/nanobind.h>

namespace prunus::engine {

void bind(nanobind::module_& m);

}  // namespace prunus::engine
