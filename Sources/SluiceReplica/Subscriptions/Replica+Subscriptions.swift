package import SluiceCore

/// The subscription store of the SDK. Reads never wait for a writer; changes block for a small transaction.
extension Replica {
    /// The newest set, in any state.
    package func currentSubscriptionSet() throws(SluiceError) -> StoredSubscriptionSet {
        try committed.read { connection throws(SluiceError) in try connection.latestSubscriptionSet() }
    }

    /// The newest set, in any state, once the writes before the call have ended.
    package func latestSubscriptionSet() async throws(SluiceError) -> StoredSubscriptionSet {
        try await read { parts throws(SluiceError) in try parts.subscriptions.latest() }
    }

    /// The newest set whose objects the file has completely; version 0 if there is none.
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

    /// Stores a new pending version of the whole set, made from the newest in one transaction.
    /// - Parameter change: the subscriptions of the new version, those without a number `unnumbered`; nil leaves the set unchanged. Runs
    ///   on the writer queue and must not block.
    /// - Returns: the stored set; nil if it is unchanged.
    package func changeSubscriptionSet(
        _ change: (StoredSubscriptionSet) -> [StoredSubscription]?
    ) throws(SluiceError) -> StoredSubscriptionSet? {
        try commitNow { parts throws(SluiceError) in
            guard let subscriptions = change(try parts.subscriptions.latest()) else { return nil }
            return try parts.subscriptions.add(subscriptions)
        }
    }

    /// Stores a new pending version of the whole set, independent of the newest. - Returns: its version.
    package func addSubscriptionSet(_ subscriptions: [StoredSubscription]) throws(SluiceError) -> UInt64 {
        try commitNow { parts throws(SluiceError) in try parts.subscriptions.add(subscriptions).version }
    }

    /// Waits until the set has an answer: complete, superseded or error. A deadline is the caller's (cancel the task).
    package func answer(toSubscriptionSet version: UInt64) async throws -> SubscriptionState {
        let (news, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let observer = observeSubscriptions { continuation.yield() }
        defer { removeObserver(observer) }
        continuation.yield()
        for await _ in news {
            let state = try await read { parts throws(SluiceError) in try parts.subscriptions.state(version: version) }
            switch state {
            case .complete, .superseded, .error: return state
            case .pending, .bootstrapping: continue
            }
        }
        throw CancellationError()
    }
}
