#pragma once

#include <nanobind/nanobind.h>

namespace prunus::search {

void bind(nanobind::module_& m);

}  // namespace prunus::search
