#pragma once

#include "gate.h"
#include "router.h"
#include "server_limits.h"

namespace marginmerge::server {

class Service;

struct RouteOptions {
    Limits limits;
    const GateCounters* counters = nullptr;
    bool has_key = false;  ///< the page then asks for the key
};

/// Every path the server answers. Each handler parses, makes one call of the service and formats.
void add_routes(Router& router, Service& service, const RouteOptions& options);

}  // namespace marginmerge::server
