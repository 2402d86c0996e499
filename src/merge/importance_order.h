#pragma once

#include "merge/page.h"
#include "merge/workspace.h"

namespace marginmerge {

/// Reorders the representatives of methods that have no pick order: those that stand for the most
/// patches first, then the one with the lowest first patch. Owners follow.
void importance_order(PageWorkspace& w, CompressedPage& page);

}  // namespace marginmerge
