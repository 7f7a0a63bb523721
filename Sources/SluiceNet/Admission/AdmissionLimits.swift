import SluiceCore

/// Bounds of a server's connections and requests, in total and by address.
package struct AdmissionLimits: Hashable, Sendable {
    /// The maximum of connections of both kinds.
    package var connections: Int
    /// The maximum of unauthenticated connections among them. The difference is a reserve for sessions.
    package var unauthenticated: Int
    package var connectionsPerAddress: Int
    package var unauthenticatedPerAddress: Int
    package var requestsPerSecond: Int
    /// The maximum of requests of one address at once.
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

    /// Returns the address that a client is counted under, or `nil` if the limits by address do not apply to it.
    func group(of address: NetworkAddress?) -> NetworkAddress? {
        guard let address, !(exemptsLoopback && address.isLoopback) else { return nil }
        return address.limitGroup
    }
}

/// A reason to refuse or close a connection, or to refuse a request. It is the label of the metric.
package enum NetRefusal: String, CaseIterable, Sendable {
    /// Too many connections from one address.
    case address
    /// Too many unauthenticated connections from one address.
    case addressUnauthenticated = "address-unauthenticated"
    /// The server has no connection left.
    case full
    /// Closed in favour of a newer connection.
    case evicted
    /// Too many requests from one address.
    case requests
    /// No first request, or no first message, in time.
    case openingTimeout = "opening-timeout"
    /// A message over `Limits.openingBytes` before authentication.
    case openingTooLarge = "opening-too-large"
    /// A body that is too slow or takes too long.
    case bodyTimeout = "body-timeout"
}
