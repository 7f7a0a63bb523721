package import SluiceCore

/// The subscription store for the app's side; these calls block for the time of a small transaction.
extension Replica {
    /// The newest set, whatever its state.
    package func currentSubscriptionSet() throws(SluiceError) -> StoredSubscriptionSet {
        try readNow { writer throws(SluiceError) in try writer.latestSubscriptionSet() }
    }

    /// The set that the file has everything of; version 0 when there is none.
    package func completeSubscriptionSet() throws(SluiceError) -> StoredSubscriptionSet {
        try readNow { writer throws(SluiceError) in try writer.subscriptionSet(version: writer.meta.applied.version) }
    }

    /// A set by version; one that is no longer kept is superseded and empty.
    package func subscriptionSet(version: UInt64) throws(SluiceError) -> StoredSubscriptionSet {
        try readNow { writer throws(SluiceError) in try writer.subscriptionSet(version: version) }
    }

    /// Stores a new version of the whole set, pending. - Returns: its version.
    package func addSubscriptionSet(_ subscriptions: [StoredSubscription]) throws(SluiceError) -> UInt64 {
        try commitNow { writer throws(SluiceError) in try writer.addSubscriptionSet(subscriptions) }
    }

    /// The highest id that a subscription ever had.
    package func highestSubscriptionID() throws(SluiceError) -> UInt64 {
        try readNow { writer throws(SluiceError) in writer.meta.subscription }
    }

    /// Waits until the set has an answer: complete, superseded or error. A deadline is the caller's (cancel the task).
    package func answer(toSubscriptionSet version: UInt64) async throws -> SubscriptionState {
        let (news, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let observer = observeSubscriptions { continuation.yield() }
        defer { removeObserver(observer) }
        continuation.yield()
        for await _ in news {
            let state = try await onWriter { writer throws(SluiceError) in try writer.subscriptionState(version: version) }
            switch state {
            case .complete, .superseded, .error: return state
            case .pending, .bootstrapping: continue
            }
        }
        throw CancellationError()
    }
}
