-- What clients of a search service send: mostly searches, some explanations, now and then the rest.
local folder = os.getenv("LOAD_FOLDER")
local function slurp(name)
    local f = assert(io.open(folder .. "/" .. name, "rb"))
    local s = f:read("*a")
    f:close()
    return s
end
local npy = slurp("query.npy")
local text = slurp("query.json")
local json = { ["Content-Type"] = "application/json" }
local octets = { ["Content-Type"] = "application/octet-stream" }
local n = 0

function request()
    n = n + 1
    local turn = n % 20
    if turn == 0 then return wrk.format("GET", "/v1/stats") end
    if turn == 5 then return wrk.format("GET", "/v1/pages/" .. (n % 100)) end
    if turn == 10 then
        return wrk.format("POST", "/v1/explain", json, '{"example": "' .. (n % 16) .. '", "id": "' .. (n % 100) .. '"}')
    end
    if turn == 15 then return wrk.format("POST", "/v1/search", json, text) end
    if turn % 2 == 0 then return wrk.format("POST", "/v1/search?k=10", octets, npy) end
    return wrk.format("POST", "/v1/search", json, '{"example": "' .. (n % 16) .. '", "k": 10}')
end

function done(summary, latency)
    local e = summary.errors
    io.write(string.format("RESULT %d %.1f %.2f %.2f %.2f %.2f %d\n", summary.requests,
        summary.requests / (summary.duration / 1e6), latency:percentile(50) / 1000, latency:percentile(90) / 1000,
        latency:percentile(99) / 1000, latency.max / 1000, e.connect + e.read + e.write + e.status + e.timeout))
end
