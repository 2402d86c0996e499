#pragma once

#include "command.h"

namespace marginmerge::cli {

/// The commands of the lab, apart from the others so that a change there rebuilds only these.
void register_advise(CLI::App& app);
void register_lab(CLI::App& app);

}  // namespace marginmerge::cli
