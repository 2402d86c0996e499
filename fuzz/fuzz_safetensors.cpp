// Headers, our multi-vector layout, and one tensor per document.
#include "consume.h"
#include "io/multi_vector_file.h"

using namespace marginmerge;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const ByteSource bytes = borrow_bytes(fuzz::as_bytes(data, size), "input");
    fuzz::run([&] {
        const MultiVectorSet set = read_multi_vectors(SafetensorsFile(bytes));
        for (std::size_t i = 0; i < set.size(); ++i) {
            fuzz::touch(set.vectors(i).data, set.vectors(i).bytes());
            fuzz::touch(set.owner(i).data(), set.owner(i).size_bytes());
            fuzz::touch(set.boxes(i).data(), set.boxes(i).size_bytes());
            if (set.find(set.id(i)) != i) __builtin_trap();
        }
    });
    return fuzz::run([&] { fuzz::consume(*open_safetensors_source(bytes, "stem")); });
}
