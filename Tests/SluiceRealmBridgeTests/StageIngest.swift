import SluiceCore
import SluicePorts
import Synchronization

@testable import SluicePipeline

/// An ingest in memory, with the checks of the gateway's.
final class StageIngest: IngestIntake {
    private struct State {
        var isClosed = false
        var tries = 0
        var taken: [ObjectChange] = []
        var kept: [WriteRejection] = []
    }

    private let state = Mutex(State())

    /// The accepted objects, in order.
    var taken: [ObjectChange] { state.withLock { $0.taken } }
    /// The rejected objects that are kept for operators.
    var kept: [WriteRejection] { state.withLock { $0.kept } }
    var tries: Int { state.withLock { $0.tries } }

    /// Fails from here on until `open`.
    func close() { state.withLock { $0.isClosed = true } }

    func open() { state.withLock { $0.isClosed = false } }

    func submit(_ objects: [ObjectChange], from sender: String, permissions: SessionPermissions) async throws -> [WriteRejection] {
        try state.withLock { state in
            state.tries += 1
            guard !state.isClosed else { throw SluiceError(.pluginFailed, "The rules are away.") }
            let (accepted, refused) = IngestCheck.split(objects, permissions: permissions)
            state.taken += accepted.map(\.change)
            return refused
        }
    }

    func keep(_ refused: [WriteRejection], from sender: String, schema: Schema) async throws { state.withLock { $0.kept += refused } }

    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] { [] }
}
