#pragma once

namespace marginmerge {

/// The library's version, for example "0.1.0"; it stands in every file and report we write.
const char* version();

}  // namespace marginmerge
