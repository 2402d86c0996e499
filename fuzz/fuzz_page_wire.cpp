// Messages between the program and the process that reads files for it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "encode/page_wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace marginmerge;
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    PageQuestion question;
    if (unpack(bytes, question)) {
        PageQuestion again;
        if (!unpack(pack(question), again) || again.path != question.path) std::abort();
    }
    PageAnswer answer;
    if (unpack(bytes, answer)) {
        PageAnswer again;
        if (!unpack(pack(answer), again)) std::abort();
    }
    return 0;
}
