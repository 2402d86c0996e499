#pragma once

#include <stdexcept>
#include <string>

namespace marginmerge {

/// What kind of thing went wrong. The command line maps it to an exit status, the server to an
/// HTTP status and a stable string.
enum class ErrorCode {
    invalid_argument,  ///< the caller asked for something that makes no sense
    not_found,         ///< a file, document or query that does not exist
    corrupt,           ///< a file that contradicts itself or its format
    unsupported,       ///< well-formed, but not something we read or do
    io,                ///< the operating system refused
    internal,          ///< our own fault
};

/// A stable snake_case name of the code, for example "not_found".
const char* to_string(ErrorCode code);

/// The only exception the library throws on purpose. The message is one line that names the file,
/// the field, what was expected and what was found.
class Error : public std::runtime_error {
public:
    Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
    ErrorCode code() const { return code_; }

private:
    ErrorCode code_;
};

}  // namespace marginmerge
