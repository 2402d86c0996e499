#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "export/plan.h"
#include "export/target.h"

namespace marginmerge {

struct HttpRequest {
    std::string method;
    std::string path;  ///< below the server's URL, with its query
    std::string content_type;
    std::string body;
};

struct HttpAnswer {
    int status = 0;
    std::string body;
    double retry_after = 0;  ///< seconds the server asks to wait, 0 when it does not say
};

/// What to make of an answer.
struct Verdict {
    enum class Kind { accepted, again, refused };
    Kind kind = Kind::accepted;
    std::string why;  ///< one line, when not accepted
};

/// A server that answers. The real one sends over HTTP and tries again; tests put another in its place.
class RestServer {
public:
    virtual ~RestServer() = default;
    /// One request without judging the answer. Throws Error(io) when there is none.
    virtual HttpAnswer ask(const HttpRequest& request) = 0;
    /// The same, and Error(io) unless the status is 2xx; `what` says what was tried.
    HttpAnswer demand(const HttpRequest& request, std::string_view what);
};

/// How one engine is loaded over HTTP.
class RestDialect {
public:
    virtual ~RestDialect() = default;
    /// Makes the collection when it is missing; Error(unsupported) when one of that name does not fit.
    /// Returns whether it was there already. `resuming`: an earlier upload of the same index is being continued.
    /// `append`: rows may be there already.
    virtual bool prepare(RestServer& server, const ExportPlan& plan, bool resuming, bool append) const = 0;
    /// A page as it stands in a request; called from many threads.
    virtual std::string encode(const ExportPlan& plan, const ExportPage& page) const = 0;
    /// The requests that add these pages. `token` is the same whenever the same pages are sent again.
    virtual std::vector<HttpRequest> requests(const ExportPlan& plan, std::span<const ExportPage> pages,
                                              std::span<const std::string> encoded, const std::string& token) const = 0;
    virtual Verdict judge(const HttpAnswer& answer) const;
    /// After the last page: whatever makes the data visible.
    virtual void finish(RestServer&, const ExportPlan&) const {}
};

/// By status alone: 2xx is accepted; 408, 429 and 5xx except 501 and 507 are worth another try.
Verdict judge_status(const HttpAnswer& answer);
/// The part of an answer that says what went wrong, as one short line.
std::string complaint(const std::string& body);
/// Error(unsupported): the server has something else under that name.
[[noreturn]] void refuse_existing(const ExportPlan& plan, std::string_view what, const std::string& expected,
                                  const std::string& found);

/// Writes the bodies a dialect would send, one file each: FOLDER/PREFIX-00000.EXTENSION.
std::unique_ptr<PageWriter> batch_files(const RestDialect& dialect, const ExportPlan& plan,
                                        const std::filesystem::path& folder, const std::string& prefix,
                                        const std::string& extension);
/// The same bodies one after another in a single file.
std::unique_ptr<PageWriter> joined_file(const RestDialect& dialect, const ExportPlan& plan,
                                        const std::filesystem::path& path);

}  // namespace marginmerge
