#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "encode/image.h"
#include "encode/page_text.h"

namespace marginmerge {

/// Plain text set on pages of 100 columns and 64 lines: long lines are wrapped, tabs expanded, a form
/// feed starts a page. Pages without a visible character are left out.
std::vector<PageText> paginate(std::string_view text);

/// Such a page as an image, set in Courier; characters outside Latin-1 show as a box.
Image render_text_page(const PageText& page, std::uint32_t longest);

}  // namespace marginmerge
