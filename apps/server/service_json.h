#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "overview.h"
#include "snapshot.h"

namespace marginmerge::server {

/// The double whose shortest text is that of the float: 0.1 and not 0.10000000149.
double short_number(float value);

nlohmann::ordered_json metadata_json(const Index& index, std::size_t position);
/// A text field of a page's metadata, "" when there is none.
std::string metadata_text(std::string_view metadata, const char* field);
nlohmann::ordered_json page_json(const Index& index, std::size_t position);
/// Adds "owner" and "boxes": which representative stands for which patch, and where patches lie.
void add_clusters(nlohmann::ordered_json& page, const Index& index, std::size_t position);
/// A compressed file knows which patch belongs to which representative, not where patches lie: fills
/// "boxes" and "grid" of a page from the full pages that are served beside it.
void borrow_places(nlohmann::ordered_json& page, const Snapshot& snapshot);
nlohmann::ordered_json view_json(const View& view);
nlohmann::ordered_json vectors_json(VectorsView vectors);
nlohmann::ordered_json overview_json(const Overview& overview);

/// Why page `position` of the view scores what it does for the query: for each token the
/// representative that answered and the patches it stands for.
nlohmann::ordered_json explain_page(const View& view, std::size_t position, VectorsView query, bool similarities);

}  // namespace marginmerge::server
