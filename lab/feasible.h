#pragma once

#include <string>

#include "lab/dataset.h"
#include "lab/method.h"

namespace marginmerge::lab {

/// Why a method cannot run on a dataset; empty when it can. Says nothing about models, which may come from others.
std::string why_not(const Dataset& data, const Method& method);

}  // namespace marginmerge::lab
