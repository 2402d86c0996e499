#include "io/pickle.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "core/fail.h"

namespace marginmerge {

namespace {

// About a million and a half tensors; the arena then takes some hundred megabytes.
constexpr std::size_t max_nodes = 20'000'000;
constexpr std::size_t max_marks = 100'000;
constexpr std::size_t max_arguments = 16;

enum Callable : std::int64_t {
    rebuild_tensor,
    rebuild_parameter,
    ordered_dict,
    torch_size,
    storage_type,  // + DType
};

struct KnownStorage {
    const char* name;
    DType type;
};
constexpr KnownStorage known_storages[] = {{"FloatStorage", DType::f32},     {"HalfStorage", DType::f16},
                                           {"BFloat16Storage", DType::bf16}, {"DoubleStorage", DType::f64},
                                           {"LongStorage", DType::i64},      {"IntStorage", DType::i32},
                                           {"ShortStorage", DType::i16},     {"CharStorage", DType::i8},
                                           {"ByteStorage", DType::u8},       {"BoolStorage", DType::boolean}};

// The pickle machine, reduced to what plain data needs.
class Machine {
public:
    Machine(std::span<const std::byte> bytes, const std::string& source)
        : data_(reinterpret_cast<const char*>(bytes.data())), size_(bytes.size()), source_(source) {
        // The values that repeat most share a node: None, False, True and the bytes 0 to 255.
        none_ = add(Pickle::Kind::none, 0);
        false_ = add(Pickle::Kind::boolean, 0);
        add(Pickle::Kind::boolean, 1);
        small_ = add(Pickle::Kind::integer, 0);
        for (int i = 1; i < 256; ++i) add(Pickle::Kind::integer, i);
    }

    Pickle run() {
        while (step(static_cast<unsigned char>(take(1)[0]))) {
        }
        return std::move(p_);
    }

private:
    using Ref = Pickle::Ref;
    using Kind = Pickle::Kind;

    template <class... Args>
    [[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) const {
        fail(ErrorCode::corrupt, "{}: pickle: {} at byte {}", source_, fmt::format(format, std::forward<Args>(args)...),
             position_);
    }
    const char* take(std::uint64_t count) {
        if (count > size_ - position_) bad("expected {} more bytes, found {}", count, size_ - position_);
        const char* begin = data_ + position_;
        position_ += count;
        return begin;
    }
    template <class T>
    T number() {
        T value;
        std::memcpy(&value, take(sizeof(T)), sizeof(T));
        return value;
    }
    std::string_view line() {
        const void* end = std::memchr(data_ + position_, '\n', size_ - position_);
        if (end == nullptr) bad("expected a line, found the end");
        const auto length = static_cast<std::size_t>(static_cast<const char*>(end) - (data_ + position_));
        const std::string_view text(take(length), length);
        take(1);
        return text;
    }

    Ref add(Kind kind, std::int64_t value, std::uint32_t items = 0, std::string_view text = {}) {
        if (p_.nodes.size() >= max_nodes) bad("expected at most {} values, found more", max_nodes);
        p_.nodes.push_back({value, text.data(), static_cast<std::uint32_t>(text.size()), items, kind});
        return static_cast<Ref>(p_.nodes.size() - 1);
    }
    Ref add_list(Kind kind, std::vector<Ref> items) {
        p_.lists.push_back(std::move(items));
        return add(kind, 0, static_cast<std::uint32_t>(p_.lists.size() - 1));
    }
    void push(Ref ref) { stack_.push_back(ref); }
    void push_integer(std::int64_t value) {
        push(value >= 0 && value < 256 ? small_ + static_cast<Ref>(value) : add(Kind::integer, value));
    }
    void push_text(std::uint64_t length) {
        if (length > UINT32_MAX) bad("expected text below 4 GB, found {} bytes", length);
        const std::string_view text(take(length), length);
        push(add(Kind::text, 0, 0, text));
    }
    Ref pop() {
        if (stack_.size() <= floor()) bad("expected a value on the stack, found none");
        const Ref top = stack_.back();
        stack_.pop_back();
        return top;
    }
    std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
    std::vector<Ref> pop_to_mark() {
        if (marks_.empty()) bad("expected a mark on the stack, found none");
        std::vector<Ref> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
        stack_.resize(marks_.back());
        marks_.pop_back();
        return items;
    }
    std::vector<Ref>& container(Kind kind) {
        if (stack_.size() <= floor()) bad("expected a container on the stack, found none");
        const Pickle::Node& node = p_.at(stack_.back());
        if (node.kind != kind)
            bad("expected a {} on the stack, found another value", kind == Kind::list ? "list" : "dict");
        return p_.lists[node.items];
    }
    void extend(Kind kind, const std::vector<Ref>& items) {
        if (kind == Kind::dict && items.size() % 2 != 0) bad("expected keys and values, found an odd number");
        auto& into = container(kind);
        into.insert(into.end(), items.begin(), items.end());
    }

    void push_global(std::string_view module, std::string_view name) {
        const auto is = [&](const char* m, const char* n) { return module == m && name == n; };
        std::int64_t callable = -1;
        if (is("torch._utils", "_rebuild_tensor_v2")) callable = rebuild_tensor;
        if (is("torch._utils", "_rebuild_parameter")) callable = rebuild_parameter;
        if (is("collections", "OrderedDict")) callable = ordered_dict;
        if (is("torch", "Size")) callable = torch_size;
        if (module == "torch") {
            for (const auto& s : known_storages)
                if (name == s.name) callable = storage_type + static_cast<std::int64_t>(s.type);
        }
        if (callable < 0)
            fail(ErrorCode::unsupported,
                 "{}: pickle: expected tensors and plain containers only, found a reference to '{}.{}'; it was not "
                 "called",
                 source_, module.substr(0, 200), name.substr(0, 200));
        push(add(Kind::callable, callable));
    }

    std::uint64_t natural(Ref ref, const char* what) {
        const auto& node = p_.at(ref);
        if (node.kind != Kind::integer || node.number < 0) bad("{}: expected a whole number from 0", what);
        return static_cast<std::uint64_t>(node.number);
    }
    const std::vector<Ref>& tuple(Ref ref, std::size_t least, const char* what) {
        if (p_.at(ref).kind != Kind::list || p_.items(ref).size() < least)
            bad("{}: expected a tuple of {}", what, least);
        return p_.items(ref);
    }

    // ('storage', storage type, key, location, number of elements)
    void persistent() {
        const auto& id = tuple(pop(), 5, "storage");
        const auto& type = p_.at(id[1]);
        const auto& key = p_.at(id[2]);
        if (p_.at(id[0]).view() != "storage" || type.kind != Kind::callable || type.number < storage_type ||
            key.kind != Kind::text)
            bad("expected a reference to a storage, found another persistent object");
        const std::uint64_t elements = natural(id[4], "storage size");
        const auto dtype = static_cast<DType>(type.number - storage_type);
        const auto [found, added] = storage_of_.try_emplace(std::string(key.view()), p_.storages.size());
        if (added) p_.storages.push_back({dtype, std::string(key.view()), elements});
        const auto& known = p_.storages[found->second];
        if (known.type != dtype || known.elements != elements)
            bad("storage '{}': expected one type and size, found two", key.view().substr(0, 60));
        push(add(Kind::storage, 0, static_cast<std::uint32_t>(found->second)));
    }

    Ref make_tensor(const std::vector<Ref>& args) {
        const auto& storage = p_.at(args[0]);
        if (storage.kind != Kind::storage) bad("tensor: expected a storage, found another value");
        const auto& shape = tuple(args[2], 0, "tensor size");
        const auto& stride = tuple(args[3], 0, "tensor stride");
        if (shape.size() != stride.size() || shape.size() > Pickle::max_dimensions)
            bad("tensor: expected at most {} sizes and as many strides, found {} and {}", Pickle::max_dimensions,
                shape.size(), stride.size());
        Pickle::Tensor t;
        t.storage = storage.items;
        t.dimensions = static_cast<std::uint32_t>(shape.size());
        t.offset = natural(args[1], "tensor storage offset");
        const std::uint64_t available = p_.storages[t.storage].elements;
        std::uint64_t elements = 1, last = t.offset;
        bool overflow = false, empty = false;
        for (std::size_t i = 0; i < shape.size(); ++i) {
            t.shape[i] = natural(shape[i], "tensor size");
            t.stride[i] = natural(stride[i], "tensor stride");
            empty = empty || t.shape[i] == 0;
            overflow = overflow || __builtin_mul_overflow(elements, t.shape[i], &elements);
            std::uint64_t reach = 0;
            overflow = overflow || __builtin_mul_overflow(t.stride[i], t.shape[i] > 0 ? t.shape[i] - 1 : 0, &reach) ||
                       __builtin_add_overflow(last, reach, &last);
        }
        if (!empty && (overflow || last >= available))
            bad("tensor: expected it within its storage of {} elements, found it reaching past the end", available);
        if (!empty && elements > available)
            bad("tensor: expected at most {} elements like its storage, found {} (an expanded view)", available,
                elements);
        p_.tensors.push_back(t);
        return add(Kind::tensor, 0, static_cast<std::uint32_t>(p_.tensors.size() - 1));
    }

    void reduce() {
        const Ref arguments = pop();
        const Ref function = pop();
        if (p_.at(function).kind != Kind::callable) bad("expected a known function to call, found another value");
        if (tuple(arguments, 0, "arguments").size() > max_arguments)
            bad("expected at most {} arguments", max_arguments);
        const std::vector<Ref> args = p_.items(arguments);
        switch (p_.at(function).number) {
            case rebuild_tensor:
                if (args.size() < 4) bad("tensor: expected 4 arguments or more, found {}", args.size());
                return push(make_tensor(args));
            case rebuild_parameter:
                if (args.empty() || p_.at(args[0]).kind != Kind::tensor) bad("parameter: expected a tensor");
                return push(args[0]);
            case ordered_dict:  // filled by SETITEMS afterwards
                if (!args.empty()) bad("OrderedDict: expected no arguments, found {}", args.size());
                return push(add_list(Kind::dict, {}));
            case torch_size:
                if (args.size() != 1 || p_.at(args[0]).kind != Kind::list) bad("torch.Size: expected a tuple");
                return push(args[0]);
            default: bad("expected a function, found a storage type being called");
        }
    }
    void push_long(std::size_t width) {
        if (width > 8) bad("expected an integer of at most 8 bytes, found {}", width);
        const char* bytes = take(width);
        std::uint64_t value = 0;
        std::memcpy(&value, bytes, width);
        if (width > 0 && width < 8 && (bytes[width - 1] & 0x80) != 0) value |= ~0ULL << (8 * width);
        push_integer(static_cast<std::int64_t>(value));
    }
    void push_decimal(std::string_view text) {
        if (text == "00" || text == "01") return push(text == "01" ? false_ + 1 : false_);
        if (!text.empty() && text.back() == 'L') text.remove_suffix(1);
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size())
            bad("expected a whole number, found '{}'", text.substr(0, 40));
        push_integer(value);
    }
    void put(std::uint64_t slot) {
        if (stack_.size() <= floor()) bad("expected a value to remember, found none");
        if (memo_.size() >= max_nodes) bad("expected at most {} remembered values, found more", max_nodes);
        memo_[slot] = stack_.back();
    }
    void get(std::uint64_t slot) {
        const auto found = memo_.find(slot);
        if (found == memo_.end()) bad("expected remembered value {}, found none", slot);
        push(found->second);
    }
    std::uint64_t slot_of(std::string_view text) {
        std::uint64_t slot = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slot);
        if (error != std::errc() || end != text.data() + text.size())
            bad("expected a slot number, found '{}'", text.substr(0, 40));
        return slot;
    }

    // One opcode; false after STOP.
    bool step(unsigned char op) {
        switch (op) {
            case 0x80: {  // PROTO
                const auto version = number<std::uint8_t>();
                if (version > 5) bad("protocol: expected at most 5, found {}", version);
                return true;
            }
            case 0x95: number<std::uint64_t>(); return true;  // FRAME
            case '.': p_.root = pop(); return false;
            case '(':
                if (marks_.size() >= max_marks) bad("expected at most {} marks, found more", max_marks);
                marks_.push_back(stack_.size());
                return true;
            case '0':
                if (stack_.size() <= floor() && !marks_.empty()) {
                    marks_.pop_back();
                } else {
                    pop();
                }
                return true;
            case '1': pop_to_mark(); return true;
            case '2': {  // DUP
                const Ref top = pop();
                push(top);
                push(top);
                return true;
            }
            case 'N': push(none_); return true;
            case 0x88: push(false_ + 1); return true;
            case 0x89: push(false_); return true;
            case 'I':
            case 'L': push_decimal(line()); return true;
            case 'J': push_integer(number<std::int32_t>()); return true;
            case 'K': push_integer(number<std::uint8_t>()); return true;
            case 'M': push_integer(number<std::uint16_t>()); return true;
            case 0x8a: push_long(number<std::uint8_t>()); return true;
            case 0x8b: push_long(number<std::uint32_t>()); return true;
            case 'F':
                line();
                push(add(Kind::real, 0));
                return true;
            case 'G':
                take(8);
                push(add(Kind::real, 0));
                return true;
            case 'V': {
                const auto text = line();
                push(add(Kind::text, 0, 0, text));
                return true;
            }
            case 'X': push_text(number<std::uint32_t>()); return true;
            case 0x8c: push_text(number<std::uint8_t>()); return true;
            case 0x8d: push_text(number<std::uint64_t>()); return true;
            case 'T': push_text(number<std::uint32_t>()); return true;
            case 'U': push_text(number<std::uint8_t>()); return true;
            case ']':
            case ')': push(add_list(Kind::list, {})); return true;
            case '}': push(add_list(Kind::dict, {})); return true;
            case 'l':
            case 't': push(add_list(Kind::list, pop_to_mark())); return true;
            case 0x85: return push_tuple(1);
            case 0x86: return push_tuple(2);
            case 0x87: return push_tuple(3);
            case 'd': {
                auto items = pop_to_mark();
                if (items.size() % 2 != 0) bad("expected keys and values, found an odd number");
                push(add_list(Kind::dict, std::move(items)));
                return true;
            }
            case 'a': {
                const Ref item = pop();
                extend(Kind::list, {item});
                return true;
            }
            case 'e': {
                const auto items = pop_to_mark();
                extend(Kind::list, items);
                return true;
            }
            case 's': {
                const Ref value = pop();
                const Ref key = pop();
                extend(Kind::dict, {key, value});
                return true;
            }
            case 'u': {
                const auto items = pop_to_mark();
                extend(Kind::dict, items);
                return true;
            }
            case 'p': put(slot_of(line())); return true;
            case 'q': put(number<std::uint8_t>()); return true;
            case 'r': put(number<std::uint32_t>()); return true;
            case 0x94: put(memo_.size()); return true;
            case 'g': get(slot_of(line())); return true;
            case 'h': get(number<std::uint8_t>()); return true;
            case 'j': get(number<std::uint32_t>()); return true;
            case 'c': {
                const auto module = line();
                push_global(module, line());
                return true;
            }
            case 0x93: {  // STACK_GLOBAL
                const Ref name = pop();
                const Ref module = pop();
                push_global(p_.at(module).view(), p_.at(name).view());
                return true;
            }
            case 'R': reduce(); return true;
            case 'Q': persistent(); return true;
            case 'b': {  // BUILD: attributes of an OrderedDict, which say nothing about tensors
                pop();
                container(Kind::dict);
                return true;
            }
            default:
                fail(ErrorCode::unsupported,
                     "{}: pickle: expected tensors and plain containers only, found {} at byte {}; nothing was called",
                     source_, opcode_name(op), position_ - 1);
        }
    }
    bool push_tuple(std::size_t count) {
        std::vector<Ref> items(count);
        for (std::size_t i = count; i-- > 0;) items[i] = pop();
        push(add_list(Kind::list, std::move(items)));
        return true;
    }
    static std::string opcode_name(unsigned char op) {
        switch (op) {
            case 'i': return "a call (INST)";
            case 'o': return "a call (OBJ)";
            case 0x81: return "a call (NEWOBJ)";
            case 0x92: return "a call (NEWOBJ_EX)";
            case 0x82:
            case 0x83:
            case 0x84: return "a registered extension (EXT)";
            case 'B':
            case 'C':
            case 0x8e:
            case 0x96: return "a bytes object";
            case 0x8f:
            case 0x90:
            case 0x91: return "a set";
            default: return fmt::format("opcode 0x{:02x}", op);
        }
    }

    const char* data_;
    std::size_t size_;
    std::size_t position_ = 0;
    const std::string& source_;
    Pickle p_;
    Ref none_ = 0, false_ = 0, small_ = 0;
    std::vector<Ref> stack_;
    std::vector<std::size_t> marks_;
    std::unordered_map<std::uint64_t, Ref> memo_;
    std::unordered_map<std::string, std::size_t> storage_of_;
};

}  // namespace

Pickle parse_pickle(std::span<const std::byte> bytes, const std::string& source) {
    return Machine(bytes, source).run();
}

}  // namespace marginmerge
