#include "encode/page_wire.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace marginmerge {

namespace {

class Packer {
public:
    template <class T>
    Packer& plain(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    template <class Container>
    Packer& many(const Container& values) {
        plain<std::uint64_t>(values.size());
        bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
        return *this;
    }
    std::string bytes;
};

class Unpacker {
public:
    explicit Unpacker(const std::string& bytes) : bytes_(bytes) {}
    template <class T>
    bool plain(T& value) {
        if (bytes_.size() - at_ < sizeof value) return false;
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return true;
    }
    template <class Container>
    bool many(Container& values) {
        std::uint64_t count = 0;
        if (!plain(count) || count > (bytes_.size() - at_) / sizeof values[0]) return false;
        values.resize(static_cast<std::size_t>(count));
        if (count > 0) std::memcpy(values.data(), bytes_.data() + at_, values.size() * sizeof values[0]);
        at_ += values.size() * sizeof values[0];
        return true;
    }
    bool done() const { return at_ == bytes_.size(); }

private:
    const std::string& bytes_;
    std::size_t at_ = 0;
};

bool wait_for(int fd, short events, const std::chrono::steady_clock::time_point* until) {
    for (;;) {
        int wait = -1;
        if (until != nullptr) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now());
            if (left.count() <= 0) return false;
            wait = static_cast<int>(std::min<std::int64_t>(left.count(), 1'000'000));
        }
        pollfd p{fd, events, 0};
        const int ready = ::poll(&p, 1, wait);
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

}  // namespace

std::string pack(const PageQuestion& q) {
    Packer p;
    p.many(q.path).plain(q.count).plain(q.page).plain(q.request.longest_side).plain(q.request.text);
    return std::move(p.bytes);
}

bool unpack(const std::string& bytes, PageQuestion& q) {
    Unpacker u(bytes);
    std::uint8_t count = 0, text = 0;
    const bool good = u.many(q.path) && u.plain(count) && u.plain(q.page) && u.plain(q.request.longest_side) &&
                      u.plain(text) && u.done();
    q.count = count != 0;
    q.request.text = text != 0;
    return good;
}

std::string pack(const PageAnswer& a) {
    Packer p;
    const std::string message = a.fault ? a.fault->what() : "";
    p.plain(static_cast<std::uint8_t>(a.fault.has_value()));
    p.plain(static_cast<std::uint8_t>(a.fault ? a.fault->code() : ErrorCode::internal)).many(message);
    p.plain(a.pages).plain(a.page.width).plain(a.page.height).many(a.page.title);
    p.many(a.page.text.text).many(a.page.text.spans);
    p.plain(a.page.image.width).plain(a.page.image.height).many(a.page.image.pixels);
    return std::move(p.bytes);
}

bool unpack(const std::string& bytes, PageAnswer& a) {
    Unpacker u(bytes);
    std::uint8_t faulty = 0, code = 0;
    std::string message;
    const bool good = u.plain(faulty) && u.plain(code) && u.many(message) && u.plain(a.pages) &&
                      u.plain(a.page.width) && u.plain(a.page.height) && u.many(a.page.title) &&
                      u.many(a.page.text.text) && u.many(a.page.text.spans) && u.plain(a.page.image.width) &&
                      u.plain(a.page.image.height) && u.many(a.page.image.pixels) && u.done();
    if (!good || code > static_cast<std::uint8_t>(ErrorCode::internal)) return false;
    if (a.page.image.pixels.size() != std::size_t{3} * a.page.image.width * a.page.image.height) return false;
    for (const auto& span : a.page.text.spans) {
        if (span.begin > span.end || span.end > a.page.text.text.size()) return false;
    }
    if (faulty != 0) a.fault = Error(static_cast<ErrorCode>(code), message);
    return true;
}

bool send_message(int fd, const std::string& bytes) {
    const std::uint64_t length = bytes.size();
    std::string all(reinterpret_cast<const char*>(&length), sizeof length);
    all += bytes;
    for (std::size_t at = 0; at < all.size();) {
        const ssize_t n = ::write(fd, all.data() + at, all.size() - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += static_cast<std::size_t>(n);
    }
    return true;
}

bool receive_message(int fd, std::string& bytes, double seconds, std::uint64_t limit) {
    const auto until = std::chrono::steady_clock::now() +
                       std::chrono::milliseconds(static_cast<std::int64_t>(seconds < 0 ? 0 : seconds * 1000));
    const auto fill = [&](char* out, std::size_t size) {
        for (std::size_t at = 0; at < size;) {
            if (!wait_for(fd, POLLIN, seconds < 0 ? nullptr : &until)) return false;
            const ssize_t n = ::read(fd, out + at, size - at);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return false;
            at += static_cast<std::size_t>(n);
        }
        return true;
    };
    std::uint64_t length = 0;
    if (!fill(reinterpret_cast<char*>(&length), sizeof length) || length > limit) return false;
    bytes.resize(static_cast<std::size_t>(length));
    return fill(bytes.data(), bytes.size());
}

}  // namespace marginmerge
