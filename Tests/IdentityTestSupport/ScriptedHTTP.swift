package import SluiceCore
package import SluicePorts
import Synchronization

/// Other services as a function of the request. It records the requests.
package final class ScriptedHTTP: OutboundHTTP {
    package typealias Script = @Sendable (OutboundRequest) async throws(SluiceError) -> OutboundAnswer

    private struct State {
        var script: Script
        var requests: [OutboundRequest] = []
    }

    private let state: Mutex<State>

    package init(_ script: @escaping Script) { state = Mutex(State(script: script)) }

    /// The requests so far.
    package var requests: [OutboundRequest] { state.withLock(\.requests) }

    package func replace(_ script: @escaping Script) { state.withLock { $0.script = script } }

    package func send(_ request: OutboundRequest) async throws(SluiceError) -> OutboundAnswer {
        let script = state.withLock { state in
            state.requests.append(request)
            return state.script
        }
        return try await script(request)
    }
}
