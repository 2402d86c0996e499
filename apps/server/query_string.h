#pragma once

#include <string_view>

#include "bodies.h"

namespace marginmerge::server {

/// The parameters of a request's target. A value is all that follows the first '=', so that a filter may hold
/// more of them; '+' is a space; a broken percent escape stands for itself; repeated names keep their order.
Parameters parse_query(std::string_view target);

}  // namespace marginmerge::server
