/// Encrypts data that a client keeps for the gateway, so that the client can neither read nor forge it.
package protocol Sealer: Sendable {
    /// Returns the sealed content; empty if it cannot be sealed.
    /// - Parameter context: authenticated data that `open` must repeat.
    func seal(_ content: [UInt8], context: [UInt8]) -> [UInt8]
    /// Returns the content; nil if this gateway did not seal it, or sealed it with another context.
    func open(_ sealed: [UInt8], context: [UInt8]) -> [UInt8]?
}

/// A sealer for gateways whose clients keep nothing: seals to empty bytes and opens nothing.
package struct NoSealer: Sealer {
    package init() {}
    package func seal(_ content: [UInt8], context: [UInt8]) -> [UInt8] { [] }
    package func open(_ sealed: [UInt8], context: [UInt8]) -> [UInt8]? { nil }
}
