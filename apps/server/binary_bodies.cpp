// npy and safetensors files from memory.
#include <cmath>
#include <cstring>
#include <limits>
#include <regex>

#include "api_error.h"
#include "bodies.h"
#include "io/safetensors.h"
#include "kernels/convert.h"

namespace marginmerge::server {

namespace {

[[noreturn]] void bad_body(const std::string& what) { throw ApiError(400, "invalid_body", what); }

enum class Number { f16, bf16, f32, f64 };

std::size_t size_of(Number type) { return type == Number::f64 ? 8 : type == Number::f32 ? 4 : 2; }

// Copies `rows` x `cols` numbers of any float type, which may stand at any address.
Matrix to_matrix(const char* bytes, Number type, std::size_t rows, std::size_t cols) {
    Matrix out(rows, cols);
    const std::size_t n = rows * cols;
    if (type == Number::f32) {
        std::memcpy(out.data(), bytes, n * 4);
    } else if (type == Number::f64) {
        for (std::size_t i = 0; i < n; ++i) {
            double d = 0;
            std::memcpy(&d, bytes + i * 8, 8);
            out.data()[i] = static_cast<float>(d);
        }
    } else {
        std::vector<std::uint16_t> halves(n);
        std::memcpy(halves.data(), bytes, n * 2);
        to_float(VectorsView(halves.data(), type == Number::f16 ? ScalarType::f16 : ScalarType::bf16, rows, cols),
                 out.data());
    }
    for (std::size_t i = 0; i < n; ++i) {
        if (!std::isfinite(out.data()[i])) bad_body("a vector holds a value that is not finite");
    }
    return out;
}

Number number_type(DType type, const std::string& tensor) {
    switch (type) {
        case DType::f16: return Number::f16;
        case DType::bf16: return Number::bf16;
        case DType::f32: return Number::f32;
        case DType::f64: return Number::f64;
        default: bad_body(tensor + ": expected floating point numbers");
    }
}

struct Header {
    std::vector<TensorInfo> tensors;
    std::map<std::string, std::string> metadata;
    std::string_view data;
    const TensorInfo* find(std::string_view name) const {
        for (const auto& t : tensors) {
            if (t.name == name) return &t;
        }
        return nullptr;
    }
    const char* bytes(const TensorInfo& t) const { return data.data() + t.begin; }
};

Header parse_header(std::string_view body) {
    std::uint64_t length = 0;
    if (body.size() < 8) bad_body("not a safetensors file: shorter than 8 bytes");
    std::memcpy(&length, body.data(), 8);
    if (length > body.size() - 8) bad_body("not a safetensors or npy file: the header would be longer than the body");
    Header header;
    header.data = body.substr(8 + static_cast<std::size_t>(length));
    try {
        parse_safetensors_header(body.substr(8, static_cast<std::size_t>(length)), header.data.size(), "body",
                                 header.tensors, header.metadata);
    } catch (const Error& error) {
        bad_body(error.what());
    }
    return header;
}

}  // namespace

QueryInput parse_npy_queries(std::string_view body, const Limits& limits) {
    if (body.size() < 12 || body.substr(0, 6) != "\x93NUMPY") bad_body("not a npy file");
    const auto major = static_cast<unsigned char>(body[6]);
    std::size_t length = 0;
    std::size_t start = 10;
    if (major == 1) {
        length = static_cast<unsigned char>(body[8]) + 256U * static_cast<unsigned char>(body[9]);
    } else if (major == 2 || major == 3) {
        std::uint32_t wide = 0;
        std::memcpy(&wide, body.data() + 8, 4);
        length = wide;
        start = 12;
    } else {
        bad_body("npy: unknown format version");
    }
    if (length > body.size() - start || length > 1024) bad_body("npy: header length");
    const std::string header(body.substr(start, length));
    static const std::regex form(
        R"(^\{ *'descr': *'([<|][fuic][0-9]{1,2})', *'fortran_order': *(True|False), *'shape': *\(([0-9, ]{0,64})\),? *\}\s*$)");
    std::smatch match;
    if (!std::regex_match(header, match, form)) bad_body("npy: header is not of the usual form");
    const std::string type = match[1];
    if (match[2] == "True") bad_body("npy: expected C order");
    if (type != "<f4" && type != "<f2" && type != "<f8")
        bad_body("npy: expected float16, float32 or float64, found " + type);
    const Number number = type == "<f4" ? Number::f32 : type == "<f2" ? Number::f16 : Number::f64;
    std::vector<std::size_t> shape;
    const std::string dims = match[3];
    for (std::size_t at = dims.find_first_of("0123456789"); at != dims.npos;
         at = dims.find_first_of("0123456789", at)) {
        const std::size_t stop = std::min(dims.find_first_not_of("0123456789", at), dims.size());
        if (stop - at > 9) bad_body("npy: shape");
        shape.push_back(std::stoul(dims.substr(at, stop - at)));
        at = stop;
    }
    if (shape.size() != 2 && shape.size() != 3)
        bad_body("npy: expected 2 or 3 dimensions, found " + std::to_string(shape.size()));
    QueryInput query;
    query.batch = shape.size() == 3;
    const std::size_t count = query.batch ? shape[0] : 1;
    const std::size_t rows = shape[shape.size() - 2];
    const std::size_t cols = shape.back();
    if (count == 0 || rows == 0 || cols == 0) bad_body("npy: empty");
    if (count > limits.batch) throw ApiError(400, "limit_exceeded", "queries: at most " + std::to_string(limits.batch));
    if (rows > limits.query_vectors) {
        throw ApiError(400, "limit_exceeded", "vectors in a query: at most " + std::to_string(limits.query_vectors));
    }
    const std::string_view data = body.substr(start + length);
    if (cols > data.size() || rows * cols > data.size() || count * rows * cols * size_of(number) != data.size()) {
        bad_body("npy: the data does not have the size of the shape");
    }
    for (std::size_t i = 0; i < count; ++i) {
        Matrix m = to_matrix(data.data() + i * rows * cols * size_of(number), number, rows, cols);
        if (query.batch) {
            // Shorter queries of a padded array end in zero rows; MaxSim must not see them.
            std::size_t used = rows;
            const auto zero = [&](std::size_t r) {
                return std::all_of(m.row(r), m.row(r) + cols, [](float f) { return f == 0; });
            };
            while (used > 0 && zero(used - 1)) --used;
            if (used == 0) bad_body("npy: query " + std::to_string(i) + " has only zero rows");
            if (used < rows) m = Matrix(m.view().middle_rows(0, used));
        }
        query.vectors.push_back(std::move(m));
    }
    return query;
}

QueryInput parse_safetensors_queries(std::string_view body, const Limits& limits) {
    QueryInput query;
    const Header header = parse_header(body);
    const auto too_many = [&] {
        throw ApiError(400, "limit_exceeded", "queries: at most " + std::to_string(limits.batch));
    };
    const auto too_long = [&] {
        throw ApiError(400, "limit_exceeded", "vectors in a query: at most " + std::to_string(limits.query_vectors));
    };
    if (header.find("offsets") != nullptr) {
        const MultiVectorSet set = parse_multi_vectors(body);
        if (set.size() > limits.batch) too_many();
        for (std::size_t i = 0; i < set.size(); ++i) {
            if (set.vectors_of(i) == 0) bad_body("query " + set.id(i) + " has no vectors");
            if (set.vectors_of(i) > limits.query_vectors) too_long();
            query.vectors.push_back(to_float(set.vectors(i)));
            for (const float f : query.vectors.back().flat()) {
                if (!std::isfinite(f)) bad_body("a vector holds a value that is not finite");
            }
            query.ids.push_back(set.id(i));
        }
        query.batch = true;
    } else {
        if (header.tensors.size() > limits.batch) too_many();
        for (const TensorInfo& t : header.tensors) {
            if (t.shape.size() != 2 || t.elements() == 0) bad_body(t.name + ": expected a 2-D tensor of vectors");
            if (t.shape[0] > limits.query_vectors) too_long();
            query.vectors.push_back(to_matrix(header.bytes(t), number_type(t.type, t.name),
                                              static_cast<std::size_t>(t.shape[0]),
                                              static_cast<std::size_t>(t.shape[1])));
            query.ids.push_back(t.name);
        }
        query.batch = query.vectors.size() > 1;
    }
    if (query.vectors.empty()) bad_body("no queries");
    return query;
}

MultiVectorSet parse_multi_vectors(std::string_view body) {
    const Header header = parse_header(body);
    const auto require = [&](const char* name, std::size_t dimensions) -> const TensorInfo& {
        const TensorInfo* t = header.find(name);
        if (t == nullptr) bad_body(std::string("no tensor '") + name + "'");
        if (t->shape.size() != dimensions) bad_body(std::string(name) + ": wrong number of dimensions");
        return *t;
    };
    const TensorInfo& vectors = require("vectors", 2);
    const TensorInfo& offsets = require("offsets", 1);
    if (offsets.type != DType::i64 || offsets.elements() == 0) bad_body("offsets: expected I64");
    // Everything is copied to aligned places of its own: a body has no alignment.
    struct Storage {
        Matrix floats;
        std::vector<std::int64_t> offsets, source_offsets;
        std::vector<std::int32_t> grid, owner;
        std::vector<float> boxes;
    };
    const auto storage = std::make_shared<Storage>();
    const auto copy = [&](const TensorInfo& t, DType type, auto& out) {
        if (t.type != type) bad_body(t.name + ": expected " + dtype_name(type));
        out.resize(static_cast<std::size_t>(t.elements()));
        if (!out.empty()) std::memcpy(out.data(), header.bytes(t), out.size() * sizeof(out[0]));
    };
    copy(offsets, DType::i64, storage->offsets);
    if (vectors.shape[1] == 0) bad_body("vectors: no columns");
    storage->floats = to_matrix(header.bytes(vectors), number_type(vectors.type, "vectors"),
                                static_cast<std::size_t>(vectors.shape[0]), static_cast<std::size_t>(vectors.shape[1]));
    MultiVectorParts parts;
    if (const TensorInfo* t = header.find("ids")) {
        if (t->type != DType::u8) bad_body("ids: expected U8");
        std::string_view text(header.bytes(*t), static_cast<std::size_t>(t->elements()));
        const std::size_t count = storage->offsets.size() - 1;
        while (parts.ids.size() < count) {
            const auto stop = text.find('\n');
            parts.ids.emplace_back(text.substr(0, stop));
            if (stop == text.npos) break;
            text.remove_prefix(stop + 1);
        }
    }
    if (const TensorInfo* t = header.find("grid")) copy(*t, DType::i32, storage->grid);
    if (const TensorInfo* t = header.find("boxes")) copy(*t, DType::f32, storage->boxes);
    if (header.find("owner") != nullptr) {
        copy(require("owner", 1), DType::i32, storage->owner);
        copy(require("source_offsets", 1), DType::i64, storage->source_offsets);
    }
    parts.vectors = ConstMatrix(storage->floats.view());
    parts.offsets = storage->offsets;
    parts.grid = storage->grid;
    parts.boxes = storage->boxes;
    parts.source_offsets = storage->source_offsets;
    parts.owner = storage->owner;
    parts.metadata = header.metadata;
    parts.storage = storage;
    try {
        return MultiVectorSet(std::move(parts), "body");
    } catch (const Error& error) {
        bad_body(error.what());
    }
}

}  // namespace marginmerge::server
