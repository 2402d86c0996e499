#include "cluster.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "core/fail.h"

namespace marginmerge::cli {

namespace {

std::unique_ptr<Cluster>& joined() {
    static std::unique_ptr<Cluster> cluster;
    return cluster;
}

long number_in(const char* name) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atol(text) : 0;
}

// Beside the program in a build folder, in lib/marginmerge when installed.
std::filesystem::path module_path() {
    if (const char* given = std::getenv("MARGINMERGE_MPI_MODULE")) return given;
    const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    constexpr const char* name = "marginmerge-mpi.so";
    for (const auto& path : {program / name, program / "../lib/marginmerge" / name,
                             program / "../lib/x86_64-linux-gnu/marginmerge" / name})
        if (std::filesystem::exists(path)) return path;
    fail(ErrorCode::unsupported,
         "started by mpirun, but {} was not found: this program was built without MPI ('scripts/setup cluster', then "
         "build again)",
         (program / name).string());
}

std::unique_ptr<Cluster> open_module() {
    const auto path = module_path();
    // Global, because MPI's own plug-ins look for its symbols there.
    void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module == nullptr) fail(ErrorCode::unsupported, "{}: cannot open: {}", path.string(), ::dlerror());
    using Open = Cluster* (*)();
    const auto open = reinterpret_cast<Open>(::dlsym(module, "marginmerge_open_cluster"));
    if (open == nullptr) fail(ErrorCode::unsupported, "{}: expected marginmerge's MPI module", path.string());
    return std::unique_ptr<Cluster>(open());
}

}  // namespace

bool started_in_parallel() {
    return number_in("OMPI_COMM_WORLD_SIZE") > 1 || number_in("PMI_SIZE") > 1 ||
           (std::getenv("PMIX_RANK") != nullptr && number_in("SLURM_NTASKS") > 1);
}

Cluster* cluster() {
    if (!joined() && started_in_parallel()) {
        joined() = open_module();
        // One process speaks.
        if (!joined()->leads() && std::freopen("/dev/null", "w", stdout) == nullptr)
            fail(ErrorCode::io, "/dev/null: cannot open");
    }
    return joined().get();
}

std::size_t cluster_threads(std::size_t threads) {
    if (threads > 0 || !joined()) return threads;
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    const long online = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
    const long usable = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : online;
    // Processes bound to cores of their own use those; unbound ones share the machine.
    return static_cast<std::size_t>(std::max(1L, std::min(usable, online / static_cast<long>(joined()->local_size()))));
}

void let_the_first_speak() {
    const long rank = std::max({number_in("OMPI_COMM_WORLD_RANK"), number_in("PMI_RANK"), number_in("PMIX_RANK")});
    if (started_in_parallel() && rank > 0) std::this_thread::sleep_for(std::chrono::seconds(2));
}

void leave_cluster(int status) {
    if (!joined()) return;
    if (status == 0) {
        joined().reset();
        return;
    }
    std::fflush(nullptr);
    joined()->abort(status);
}

}  // namespace marginmerge::cli
