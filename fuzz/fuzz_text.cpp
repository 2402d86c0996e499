// Judgements and runs. What was read must survive being written and read again.
#include "consume.h"
#include "io/qrels.h"
#include "io/trec_run.h"

using namespace marginmerge;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    fuzz::run([&] { parse_qrels(text, "input"); });
    return fuzz::run([&] {
        const RankedRun run = parse_trec_run(text, "input");
        std::string again;
        for (const auto& [query, ranking] : run) append_trec_lines(again, query, ranking, "t");
        if (parse_trec_run(again, "again").size() != run.size()) __builtin_trap();
    });
}
