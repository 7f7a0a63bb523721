import Hummingbird
import SluiceCore
import SluiceNet
import SluicePluginHost
import SluiceValues

/// Operators' route for the state of the plugins.
///
/// `GET plugins` returns `{"generations": [{"generation", "in_use", "plugins": […]}]}`: the generation in use, then those that are
/// ending.
struct AdminPluginRoute: Sendable {
    let generations: RuleGenerations

    func add<Context: RequestContext>(to routes: some RouterMethods<Context>) {
        routes.get("plugins") { _, _ in
            let all = generations.all
            let described = all.enumerated().map { place, generation -> JSON in
                [
                    "generation": .int(Int64(clamping: generation.number)), "in_use": .bool(place == 0),
                    "plugins": .array(generation.chain.standings.map(\.json)),
                ]
            }
            return JSONResponse(["generations": .array(described)]).response
        }
    }
}

extension PluginHealth {
    fileprivate var json: JSON {
        [
            "file": .string(path), "name": info.map { .string($0.name) } ?? .null, "version": info.map { .string($0.version) } ?? .null,
            "hooks": .array((info?.hooks.map(\.name).sorted() ?? []).map { .string($0) }), "state": .string(state.rawValue),
            "for_functions": .bool(isForFunctions), "in_process": .bool(isInProcess), "process": processID.map { .int(Int64($0)) } ?? .null,
            "calls": .int(Int64(calls)),
            "denied": .int(Int64(denied)), "failures": .int(Int64(failures)), "hosts_ended": .int(Int64(ends)),
            "last_error": trouble.map { trouble in
                [
                    "code": .int(Int64(trouble.error.code.rawValue)), "error": .string(trouble.error.operatorText),
                    "seconds_ago": .int(Int64(clamping: trouble.age / 1_000_000_000)),
                ]
            } ?? .null,
        ]
    }
}
