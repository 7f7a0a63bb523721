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
    /// The header of that request that carries the access token as well, for what is between client and gateway; nil: none does.
    package var authorizationHeader: String?
    package var timing: SyncTiming
    /// What a client reset does.
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

/// How long the engine waits for the gateway, in milliseconds.
package struct SyncTiming: Hashable, Sendable {
    /// From the attempt to Welcome, and for a token.
    package var connect: UInt64
    /// Between pings.
    package var ping: UInt64
    /// For a sign of life after a ping.
    package var pong: UInt64
    /// For the TCP connection, and for the answer to the upgrade; nil: as the transport has it. All of it is within `connect`.
    package var transport: UInt64?

    package init(connect: UInt64 = 120_000, ping: UInt64 = 30_000, pong: UInt64 = 30_000, transport: UInt64? = nil) {
        self.connect = connect
        self.ping = ping
        self.pong = pong
        self.transport = transport
    }

    /// Without a byte from the gateway until the connection counts as dead.
    package var silence: UInt64 { ping + pong }
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
