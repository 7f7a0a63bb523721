import SluiceReplica

/// The address, app and behaviour of a sync engine.
package struct SyncConfiguration: Hashable, Sendable {
    /// The gateway: `ws://`, `wss://`, `http://` or `https://` with host and optionally port.
    package var url: String
    package var app: String
    /// Name and version of the SDK, which the gateway logs.
    package var sdk: String
    /// Extra header fields of the request that opens the connection.
    package var headers: [String: String]
    /// The header of that request that repeats the access token, for proxies in front of the gateway. `nil` sends none.
    package var authorizationHeader: String?
    package var timing: SyncTiming
    /// The engine's reaction when the gateway no longer knows the client replica.
    package var reset: ResetMode

    package init(
        url: String, app: String, sdk: String = "sluice-swift/1", headers: [String: String] = [:], authorizationHeader: String? = nil,
        timing: SyncTiming = SyncTiming(), reset: ResetMode = .recover
    ) {
        self.url = url
        self.app = app
        self.sdk = sdk
        self.headers = headers
        self.authorizationHeader = authorizationHeader
        self.timing = timing
        self.reset = reset
    }
}

/// Timeouts of the engine, in milliseconds.
package struct SyncTiming: Hashable, Sendable {
    /// The limit from the connection attempt to `Welcome`, and for fetching a token.
    package var connect: UInt64
    /// The interval between pings.
    package var ping: UInt64
    /// The limit for an answer to a ping.
    package var pong: UInt64
    /// The limit for the TCP connection, the TLS handshake and the answer to the upgrade together, within `connect`. `nil` uses the
    /// transport's default.
    package var transport: UInt64?

    package init(connect: UInt64 = 120_000, ping: UInt64 = 30_000, pong: UInt64 = 30_000, transport: UInt64? = nil) {
        self.connect = connect
        self.ping = ping
        self.pong = pong
        self.transport = transport
    }

    /// The time without a byte from the gateway after which the connection counts as dead.
    package var silence: UInt64 { ping + pong }
}

/// The reaction to a gateway that no longer knows the client replica.
package enum ResetMode: Hashable, Sendable {
    /// The engine stops. The app decides.
    case manual
    /// Downloads anew. Drops the writes that were not uploaded once the new state has arrived.
    case discard
    /// Downloads anew and uploads the pending writes to the new state. Behaves as `manual` where the gateway forbids recovery.
    case recover
    /// Behaves as `recover`, or as `discard` where the gateway forbids recovery.
    case recoverOrDiscard

    /// Returns the reset to perform, or `nil` to leave the decision to the app.
    func reset(isRecoveryAllowed: Bool) -> ReplicaReset? {
        switch self {
        case .manual: nil
        case .discard: .discard
        case .recover: isRecoveryAllowed ? .recover : nil
        case .recoverOrDiscard: isRecoveryAllowed ? .recover : .discard
        }
    }
}
