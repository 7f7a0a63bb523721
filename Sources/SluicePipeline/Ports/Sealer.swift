/// Closes what a client keeps for the gateway, so that it can neither be read nor made up.
package protocol Sealer: Sendable {
    /// - Parameter context: what `open` has to name again.
    /// - Returns: nothing when it cannot be sealed.
    func seal(_ content: [UInt8], context: [UInt8]) -> [UInt8]
    /// - Returns: nil for what was not sealed here, or in another context.
    func open(_ sealed: [UInt8], context: [UInt8]) -> [UInt8]?
}

/// For gateways that give their clients nothing to keep.
package struct NoSealer: Sealer {
    package init() {}
    package func seal(_ content: [UInt8], context: [UInt8]) -> [UInt8] { [] }
    package func open(_ sealed: [UInt8], context: [UInt8]) -> [UInt8]? { nil }
}
