import SluiceReplica

/// Where and as what to sync.
package struct SyncConfiguration: Hashable, Sendable {
    /// The gateway: `ws://`, `wss://`, `http://` or `https://` with host and optionally port.
    package var url: String
    package var app: String
    /// Name and version of the SDK, for the gateway's log.
    package var sdk: String
    /// Added to the request that opens the connection.
    package var headers: [String: String]
    /// What a client reset does.
    package var reset: ResetMode

    package init(
        url: String, app: String, sdk: String = "sluice-swift/1", headers: [String: String] = [:], reset: ResetMode = .recover
    ) {
        self.url = url
        self.app = app
        self.sdk = sdk
        self.headers = headers
        self.reset = reset
    }
}

/// What is done when the gateway does not know the file any more.
package enum ResetMode: Hashable, Sendable {
    /// The engine stops and leaves it to the app.
    case manual
    /// The server's side begins anew; writes that were not uploaded are dropped when it is there.
    case discard
    /// The server's side begins anew, and writes that were not uploaded are uploaded to it. As `manual` where the gateway forbids that.
    case recover
    /// As `recover`, or as `discard` where the gateway forbids to recover.
    case recoverOrDiscard

    /// Nil: leave it to the app.
    func reset(isRecoveryAllowed: Bool) -> ReplicaReset? {
        switch self {
        case .manual: nil
        case .discard: .discard
        case .recover: isRecoveryAllowed ? .recover : nil
        case .recoverOrDiscard: isRecoveryAllowed ? .recover : .discard
        }
    }
}
