import SluiceRealm

// The stored state of a file's views. One consumer asks for the next event, so the calls follow each other.
extension BridgeView {
    /// The entries after which the state is stored again.
    private static let entriesBetweenStates = 1_000

    /// `true` once the stream has grown far beyond the stored state.
    var isStateDue: Bool {
        events.isEmpty && max(entriesSinceState, stream.created.count) >= Self.entriesBetweenStates && stream.isStorable
    }

    func store() async throws {
        entriesSinceState = 0
        let state = stream.current
        try await keep(state.replica.bytes, state.view)
        stream.keep(state)
    }

    /// Stores the objects of the next part ahead of it, if the client may append the bootstrap of the next connection to it. That bootstrap
    /// must erase them.
    func storeParts() async throws {
        let parts = stream.storedParts
        guard stream.kept.replica.parts != parts else { return }
        var state = stream.kept
        state.replica.parts = parts
        try await keep(state.replica.bytes, state.view)
        stream.keep(parts: parts)
    }

    /// Stores the objects that are to be put right.
    func storeRepairs() async throws {
        for state in stream.remainders { try await keep(state.replica.bytes, state.view) }
        stream.keepRepairs()
    }
}
