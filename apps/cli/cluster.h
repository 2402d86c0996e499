#pragma once

#include <string>

#include "marginmerge/core/cluster.h"

namespace marginmerge::cli {

/// True when mpirun or srun started several of us for one job.
bool started_in_parallel();

/// The processes of this job, or null when this one is alone. The first call joins them; under mpirun in a program
/// without the MPI module it throws Error(unsupported).
Cluster* cluster();

/// How many threads `--threads` means in one of several processes: 0 shares a machine's cores between those on it.
std::size_t cluster_threads(std::size_t threads);

/// Before an error is printed: what all processes find wrong is said once. The others wait a moment, in which the first
/// reports it and ends them.
void let_the_first_speak();

/// Says goodbye to the others. After an error (`status` not 0) it ends all of them.
void leave_cluster(int status);

}  // namespace marginmerge::cli
