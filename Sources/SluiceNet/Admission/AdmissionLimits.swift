import SluiceCore

/// Bounds of a server's connections and requests, in all and by address.
package struct AdmissionLimits: Hashable, Sendable {
    /// Connections of both kinds.
    package var connections: Int
    /// Of those the ones that have not authenticated. The difference is a reserve for sessions.
    package var unauthenticated: Int
    package var connectionsPerAddress: Int
    package var unauthenticatedPerAddress: Int
    package var requestsPerSecond: Int
    /// Requests of one address at once.
    package var requestBurst: Int
    /// `true` if the limits by address do not apply to connections from this machine.
    package var exemptsLoopback: Bool

    package init(
        connections: Int = Limits.connections, unauthenticated: Int = Limits.unauthenticatedConnections,
        connectionsPerAddress: Int = Limits.connectionsPerAddress, unauthenticatedPerAddress: Int = Limits.unauthenticatedPerAddress,
        requestsPerSecond: Int = Limits.requestsPerSecond, requestBurst: Int = Limits.requestBurst, exemptsLoopback: Bool = false
    ) {
        self.connections = connections
        self.unauthenticated = unauthenticated
        self.connectionsPerAddress = connectionsPerAddress
        self.unauthenticatedPerAddress = unauthenticatedPerAddress
        self.requestsPerSecond = requestsPerSecond
        self.requestBurst = requestBurst
        self.exemptsLoopback = exemptsLoopback
    }

    /// The address under which a client counts; nil if the limits by address do not apply to it.
    func group(of address: NetworkAddress?) -> NetworkAddress? {
        guard let address, !(exemptsLoopback && address.isLoopback) else { return nil }
        return address.limitGroup
    }
}

/// A reason for which a server refuses or ends a connection or a request; the label of the metric.
package enum NetRefusal: String, CaseIterable, Sendable {
    /// Too many connections from one address.
    case address
    /// Too many connections from one address that have not authenticated.
    case addressUnauthenticated = "address-unauthenticated"
    /// The server has no connection left.
    case full
    /// Closed to make room for a newer connection.
    case evicted
    /// Too many requests from one address.
    case requests
    /// No first request, or no Hello, in time.
    case openingTimeout = "opening-timeout"
    /// A message over `Limits.openingBytes` before authentication.
    case openingTooLarge = "opening-too-large"
    /// A body that is too slow, or takes too long.
    case bodyTimeout = "body-timeout"
}
