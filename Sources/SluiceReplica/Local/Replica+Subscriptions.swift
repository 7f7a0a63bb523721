package import SluiceCore

/// The subscription store for the app's side. Reading waits for no writer, changing blocks for the time of a small transaction.
extension Replica {
    /// The newest set, whatever its state.
    package func currentSubscriptionSet() throws(SluiceError) -> StoredSubscriptionSet {
        try committed.read { connection throws(SluiceError) in try connection.latestSubscriptionSet() }
    }

    /// The set that the file has everything of; version 0 when there is none.
    package func completeSubscriptionSet() throws(SluiceError) -> StoredSubscriptionSet {
        try committed.read { connection throws(SluiceError) in
            try connection.subscriptionSet(version: ReplicaMeta(connection.meta()).applied.version)
        }
    }

    /// A set by version; one that is no longer kept is superseded and empty.
    package func subscriptionSet(version: UInt64) throws(SluiceError) -> StoredSubscriptionSet {
        try committed.read { connection throws(SluiceError) in try connection.subscriptionSet(version: version) }
    }

    /// The version of the newest state in the file. A moment may pass until `version` and the observers have it.
    package func committedVersion() throws(SluiceError) -> UInt64 {
        try committed.read { connection throws(SluiceError) in try connection.version() }
    }

    /// Makes a new version of the whole set, pending, from the newest. Nobody else changes it meanwhile.
    /// - Parameter change: the subscriptions of the new version, those without a number `unnumbered`; nil: it stays as it is. It runs
    ///   where all writing happens: it must not wait.
    /// - Returns: the set as it was stored; nil when it stays.
    package func changeSubscriptionSet(
        _ change: (StoredSubscriptionSet) -> [StoredSubscription]?
    ) throws(SluiceError) -> StoredSubscriptionSet? {
        try commitNow { writer throws(SluiceError) in
            guard let subscriptions = change(try writer.connection.latestSubscriptionSet()) else { return nil }
            return try writer.addSubscriptionSet(subscriptions)
        }
    }

    /// Stores a new version of the whole set, pending, whatever the newest is. - Returns: its version.
    package func addSubscriptionSet(_ subscriptions: [StoredSubscription]) throws(SluiceError) -> UInt64 {
        try commitNow { writer throws(SluiceError) in try writer.addSubscriptionSet(subscriptions).version }
    }

    /// Waits until the set has an answer: complete, superseded or error. A deadline is the caller's (cancel the task).
    package func answer(toSubscriptionSet version: UInt64) async throws -> SubscriptionState {
        let (news, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let observer = observeSubscriptions { continuation.yield() }
        defer { removeObserver(observer) }
        continuation.yield()
        for await _ in news {
            let state = try await onWriter { writer throws(SluiceError) in try writer.connection.subscriptionState(version: version) }
            switch state {
            case .complete, .superseded, .error: return state
            case .pending, .bootstrapping: continue
            }
        }
        throw CancellationError()
    }
}
