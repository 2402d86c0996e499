#include "marginmerge/core/error.h"

namespace marginmerge {

const char* to_string(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid_argument: return "invalid_argument";
        case ErrorCode::not_found: return "not_found";
        case ErrorCode::corrupt: return "corrupt";
        case ErrorCode::unsupported: return "unsupported";
        case ErrorCode::io: return "io";
        case ErrorCode::internal: return "internal";
    }
    return "internal";
}

}  // namespace marginmerge
