#include "support/npy.h"

#include <cstring>
#include <fstream>
#include <regex>
#include <stdexcept>

namespace marginmerge::test {

namespace {

struct Array {
    std::string type;
    std::vector<std::size_t> shape;
    std::vector<char> data;
};

Array load(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot open " + path.string());
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    std::uint16_t length = 0;
    std::memcpy(&length, bytes.data() + 8, 2);
    const std::string header = bytes.substr(10, length);
    std::smatch m;
    Array a;
    if (!std::regex_search(header, m, std::regex("'descr': '([^']+)'"))) throw std::runtime_error("no descr");
    a.type = m[1];
    if (!std::regex_search(header, m, std::regex("'shape': \\(([^)]*)\\)"))) throw std::runtime_error("no shape");
    const std::string shape = m[1];
    const std::regex number("[0-9]+");
    for (std::sregex_iterator it(shape.begin(), shape.end(), number), end; it != end; ++it)
        a.shape.push_back(std::stoul(it->str()));
    a.data.assign(bytes.begin() + 10 + length, bytes.end());
    return a;
}

}  // namespace

Matrix load_floats(const std::filesystem::path& path) {
    const Array a = load(path);
    if (a.type != "<f4") throw std::runtime_error(path.string() + ": expected float32, found " + a.type);
    Matrix m(a.shape.size() > 1 ? a.shape[0] : 1, a.shape.empty() ? 1 : a.shape.back());
    std::memcpy(m.data(), a.data.data(), m.size() * 4);
    return m;
}

std::vector<std::int32_t> load_ints(const std::filesystem::path& path) {
    const Array a = load(path);
    if (a.type != "<i4") throw std::runtime_error(path.string() + ": expected int32, found " + a.type);
    std::vector<std::int32_t> v(a.data.size() / 4);
    std::memcpy(v.data(), a.data.data(), a.data.size());
    return v;
}

std::filesystem::path oracle(const std::string& name) {
    return std::filesystem::path(MARGINMERGE_TEST_DATA) / "oracle" / name;
}

}  // namespace marginmerge::test
